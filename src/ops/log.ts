import pino from 'pino';
import type { ErrorCode } from '../errors.ts';
import type { Cause } from '../problems/causes.ts';
import type { ProblemStep } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { LogLevel } from './log-level.ts';
import { type BoundedOutput, standardOutput } from './standard-output.ts';

/** What the log says of a request: metadata only (contract: records are never kept). */
export interface RequestLine {
  readonly request_id: string;
  readonly method: string;
  /** The path when the service knows it; an unknown path may hold anything, so it is not kept. */
  readonly path: string | null;
  readonly status: number;
  readonly duration_ms: number;
  readonly code: string | null;
  /** Of a decision, once they are known: the catalog's id of the model, the mode, and what was charged for. */
  readonly model: string | null;
  readonly mode: Mode | null;
  readonly input_tokens: number | null;
  /** Only where the answer is that of an earlier request with the same idempotency key. */
  readonly is_replayed?: true;
  /** Null where the request is not traced. */
  readonly trace_id: string | null;
  /** Written only where the operator wants it; null where nothing is known. */
  readonly client_address: string | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly key_id: string | null;
}

/** What the log says of a failure that is our own fault: metadata only. */
export interface ProblemLine {
  /** The request's `x-request-id`; null for background work. */
  readonly request_id: string | null;
  readonly step: ProblemStep;
  readonly code: ErrorCode | null;
  /** The id of the catalog's model that failed. */
  readonly model?: string | undefined;
  /** The classes and codes of the causes, outermost first. */
  readonly error: string;
  /** In the first line of a kind. */
  readonly causes?: readonly Cause[];
  /** In a later one: the request whose line has the causes. */
  readonly same_as?: string | null;
  /** In the line that sums background work up: how often it failed again. */
  readonly repeated?: number;
}

/** The service's log: one JSON line an event on standard output, metadata only, never a record or a secret. */
export interface Log {
  /** One answered request. */
  request(line: RequestLine): void;
  /** A failure that is our own fault. */
  problem(line: ProblemLine): void;
  /** Something that an operator must look at. */
  error(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  /** Something that an operator should know. */
  warn(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  info(message: string, details?: Readonly<Record<string, string | number | null>>): void;
}

/** A log whose level can be changed. */
export interface AdjustableLog extends Log {
  level: LogLevel;
}

/** What a log has in its lines beside what all have. */
interface LogOptions {
  /** Whether the lines of requests name the client's address, which is a person's. */
  readonly has_client_address?: boolean;
}

/** A duration in milliseconds, as a line has it: to the microsecond. */
function roundedDuration(duration_ms: number): number {
  return Math.round(duration_ms * 1_000) / 1_000;
}

/** A log of that level, on standard output. Lines that could not be written are named in a line of their own. */
export function createLog(
  level: LogLevel,
  output: BoundedOutput = standardOutput,
  { has_client_address = false }: LogOptions = {},
): AdjustableLog {
  let current = level;
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  );
  output.onResumed = (lines) =>
    logger.error({ lines }, 'lines of this log were lost: it could not be written');
  return {
    request: ({ client_address, duration_ms, ...line }) =>
      logger.info(
        {
          ...line,
          duration_ms: roundedDuration(duration_ms),
          ...(has_client_address ? { client_address } : {}),
        },
        'request',
      ),
    problem: (line) => logger.error(line, 'problem'),
    error: (message, details = {}) => logger.error(details, message),
    warn: (message, details = {}) => logger.warn(details, message),
    info: (message, details = {}) => logger.info(details, message),
    get level() {
      return current;
    },
    set level(changed: LogLevel) {
      current = changed;
      logger.level = changed;
    },
  };
}
