import pino from 'pino';
import type { OverloadReason } from '../errors/errors.ts';
import type { ProblemLine } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { LogLevel } from './log-level.ts';
import { type BoundedOutput, standardOutput } from './standard-output.ts';

/** The log line of a request: metadata only (contract: records are never kept). */
export interface RequestLine {
  readonly request_id: string;
  /** Null where no request could be read. */
  readonly method: string | null;
  /** The path if the service has it; an unknown path may contain anything, so it is not logged. */
  readonly path: string | null;
  readonly status: number;
  readonly duration_ms: number;
  readonly code: string | null;
  /** Present for `overloaded`: what refused, in a fixed word. */
  readonly reason?: OverloadReason;
  /** Whole seconds after which a retry makes sense, where the refusal has them. */
  readonly retry_after_s?: number;
  /** Of a decision, once known: the catalog's id of the model, the mode, and the billed tokens. */
  readonly model: string | null;
  readonly mode: Mode | null;
  readonly input_tokens: number | null;
  /** Present for the answer of an earlier request with the same idempotency key. */
  readonly is_replayed?: true;
  /** Null where the request is not traced. */
  readonly trace_id: string | null;
  /** Logged only where the operator wants it; null where unknown. */
  readonly client_address: string | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly key_id: string | null;
}

/**
 * The service's log: one JSON line an event on standard output, metadata only, never a record or a secret.
 */
export interface Log {
  /** Logs one answered request. */
  request(line: RequestLine): void;
  /** Logs a failure that is our own fault. */
  problem(line: ProblemLine): void;
  /** Logs an event that an operator must look into. */
  error(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  /** Logs an event that an operator should know of. */
  warn(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  info(message: string, details?: Readonly<Record<string, string | number | null>>): void;
}

/** A log whose level can be changed. */
export interface AdjustableLog extends Log {
  level: LogLevel;
}

/** The additions to every line of a log. */
interface LogOptions {
  /** True if the lines of requests have the client's address, which is personal data. */
  readonly has_client_address?: boolean;
}

/** Returns a duration in milliseconds, rounded to the microsecond. */
function roundedDuration(duration_ms: number): number {
  return Math.round(duration_ms * 1_000) / 1_000;
}

/** Creates a log of that level, on standard output. Lost lines are counted in a line of their own. */
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
