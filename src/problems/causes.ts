import { errorMessage } from '../errors/error-message.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';

/** One error of a chain of causes, with only the metadata that may be logged. */
export interface Cause {
  /** The name of its class. */
  readonly error: string;
  /** SQLite's, the system's or an upstream's code, such as `SQLITE_BUSY`, or PostgreSQL's, such as `40P01`. */
  readonly code?: string;
  /** The message, only for the classes in `CLASSES_WITHOUT_CLIENT_TEXT`. */
  readonly message?: string;
  /** The frames of its stack, innermost first. */
  readonly at: readonly string[];
}

/**
 * The failure of one of our threads. An error loses its code and its causes between threads, so they are sent
 * beside its message.
 */
export class ThreadFailed extends Error {
  override readonly name = 'ThreadFailed';
  constructor(
    message: string,
    readonly causes: readonly Cause[],
  ) {
    super(message);
  }
}

/** A thread's message in place of its result. */
export interface ThreadFailure {
  readonly failed: { readonly message: string; readonly causes: readonly Cause[] };
}

/**
 * Our classes whose messages contain only fixed sentences, numbers, paths, our own ids and the engine's words
 * about itself. Every other message may quote a value: JSON errors quote the text, SQLite's the value, those
 * of the system and of libraries their arguments.
 */
const CLASSES_WITHOUT_CLIENT_TEXT: ReadonlySet<string> = new Set([
  'AddonUnavailable',
  'AddressRefused',
  'BackupCommandFailed',
  'BackupFailed',
  'BackupRefused',
  'DatabaseFileGone',
  'DeviceUnavailable',
  'EngineFailed',
  'EngineOverloaded',
  'EngineRetired',
  'EngineStuck',
  'EvaluationFailed',
  'EvaluationTimedOut',
  'FileUnread',
  'HoldNotOpen',
  'LedgerUnavailable',
  'MailNotSent',
  'ModelUnavailable',
  'NestedTransaction',
  'PaymentProviderFailed',
  'PragmaRefused',
  'PruneRefused',
  'ReadTookTooLong',
  'SchemaRefused',
  'SessionDropped',
  'SettingRefused',
  'SetupError',
  'TookTooLong',
  'TraceExportFailed',
  'TransactionEnded',
  'TransactionStalled',
  'UnknownAccount',
  'UpstreamFailed',
  'WebhookNotApplied',
  'WeightsError',
  'WriteQueueFull',
]);

/** The bounds of a line; the longest message is a compiler's output, which `AddonUnavailable` quotes. */
const CAUSES_MAX = 8;
const FRAMES_MAX = 12;
const MESSAGE_CHARACTERS_MAX = 1_000;

const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
/** PostgreSQL's own error code. Its client adds a code of its own, which has no information. */
const SQL_STATE = /^[0-9A-Z]{5}$/;

/** Returns the error and its causes, outermost first, without any text of a client. */
export function causesOf(error: unknown): readonly Cause[] {
  const causes: Cause[] = [];
  let current: unknown = error;
  do {
    causes.push(causeOf(current));
    if (current instanceof ThreadFailed) {
      causes.push(...current.causes);
      break;
    }
    current = current instanceof Error ? current.cause : undefined;
  } while (current !== undefined && causes.length < CAUSES_MAX);
  return causes.slice(0, CAUSES_MAX);
}

/** Returns a thread's message about that error. */
export function threadFailure(error: unknown): ThreadFailure {
  return { failed: { message: errorMessage(error), causes: causesOf(error) } };
}

function causeOf(error: unknown): Cause {
  if (!(error instanceof Error)) return { error: typeof error, at: [] };
  const { name, message } = error;
  const code = codeOf(error);
  return {
    error: CLASS_NAME.test(name) ? name : 'Error',
    ...(code === undefined ? {} : { code }),
    ...(CLASSES_WITHOUT_CLIENT_TEXT.has(name) ? { message: message.slice(0, MESSAGE_CHARACTERS_MAX) } : {}),
    at: framesOf(error),
  };
}

function codeOf(error: Error): string | undefined {
  if ('errno' in error && typeof error.errno === 'string' && SQL_STATE.test(error.errno)) return error.errno;
  const code = systemErrorCode(error);
  return code !== undefined && SYSTEM_CODE.test(code) ? code : undefined;
}

/**
 * Returns the frames of the stack without the message, whose lines may look like frames. Returns none where
 * the message cannot be separated.
 */
function framesOf({ stack, message }: Error): readonly string[] {
  if (typeof stack !== 'string') return [];
  const message_at = stack.indexOf(message);
  if (message_at < 0) return [];
  const after_message = stack
    .slice(message_at + message.length)
    .split('\n')
    .slice(1);
  return after_message
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, FRAMES_MAX);
}
