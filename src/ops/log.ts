import pino from 'pino';
import type { ErrorCode } from '../errors.ts';
import type { LogLevel } from './log-level.ts';
import { type BoundedOutput, standardOutput } from './standard-output.ts';

/** What the log says of a request: metadata only (spec, rule 5). */
export interface RequestLine {
  readonly request_id: string;
  readonly method: string;
  /** The path when the service knows it; an unknown path may hold anything, so it is not kept. */
  readonly path: string | null;
  readonly status: number;
  readonly duration_ms: number;
  readonly code: ErrorCode | null;
  readonly organization_id: string | null;
  readonly project_id: string | null;
  readonly key_id: string | null;
}

/** The service's log: one JSON line an event on standard output, metadata only, never a record or a secret. */
export interface Log {
  /** One answered request. */
  request(line: RequestLine): void;
  /** Something that should not happen while a request was answered. */
  failure(request_id: string, error: unknown): void;
  /** Something that an operator must look at. */
  error(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  /** Something that an operator should know. */
  warn(message: string, details?: Readonly<Record<string, string | number | null>>): void;
  info(message: string, details?: Readonly<Record<string, string | number | null>>): void;
}

/** A log of that level, on standard output. Lines that could not be written are named in a line of their own. */
export function createLog(level: LogLevel, output: BoundedOutput = standardOutput): Log {
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, output);
  output.onResumed = (lines) =>
    logger.error({ lines }, 'lines of this log were lost: it could not be written');
  return {
    request: (line) => logger.info(line, 'request'),
    // Only where it happened: the text of an error may quote what it failed on.
    failure: (request_id, error) => logger.error({ request_id, ...placeOf(error) }, 'request failed'),
    error: (message, details = {}) => logger.error(details, message),
    warn: (message, details = {}) => logger.warn(details, message),
    info: (message, details = {}) => logger.info(details, message),
  };
}

function placeOf(error: unknown): { readonly error: string; readonly at: readonly string[] } {
  if (!(error instanceof Error)) return { error: typeof error, at: [] };
  const frames = (error.stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at '));
  return { error: error.name, at: frames.map((line) => line.trim()) };
}
