import { systemErrorCode } from '../errors/system-error-code.ts';
import { ThreadFailed } from '../problems/causes.ts';

/**
 * Returns the system's and SQLite's codes of an error, of its causes, and of a thread's message; outermost
 * first.
 */
function codesOf(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return [];
  const own = systemErrorCode(error);
  const sent = error instanceof ThreadFailed ? error.causes.flatMap(({ code }) => code ?? []) : [];
  return [...(own === undefined ? [] : [own]), ...sent, ...codesOf(error.cause)];
}

/** Advice about a failure of a folder or a file in it, by the start of the code. */
const ADVICE: readonly (readonly [code: RegExp, advice: string])[] = [
  [/^(ENOSPC|EDQUOT|EFBIG|SQLITE_FULL|SQLITE_IOERR_WRITE)/, 'has no room left: make room on its disk'],
  [/^(EMFILE|ENFILE)/, 'cannot be opened, for lack of file descriptors: raise the limit ("ulimit -n")'],
  [/^(EROFS)/, 'is on a disk that cannot be written: mount it for writing'],
  [/^(EACCES|EPERM)/, 'cannot be written: give this user the right to write it'],
  [/^(ENOENT|ENOTDIR)/, 'does not exist: make it first'],
];

/**
 * Returns the end of a sentence about that folder, such as "has no room left: …", without a full stop. Null
 * for other errors.
 */
export function adviceOn(error: unknown): string | null {
  const codes = codesOf(error);
  return ADVICE.find(([start]) => codes.some((code) => start.test(code)))?.[1] ?? null;
}
