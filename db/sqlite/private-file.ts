import { closeSync, fchownSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { OWNER_ONLY_FILE, ROOT_USER_ID } from '../../src/files/file-permissions.ts';

/**
 * Creates an empty file that only its owner can read and write, unless there is one. It does not open such a file, because
 * closing it would drop this process's locks on it. Throws the file system's errors.
 */
export function makePrivateFile(path: string): void {
  try {
    makeNewPrivateFile(path);
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
}

/**
 * Creates an empty file that only its owner can read and write. If root creates it, it gets the folder's owner, so that
 * the server can use it. Throws the file system's errors, among them `EEXIST`.
 */
export function makeNewPrivateFile(path: string): void {
  const file = openSync(path, 'ax', OWNER_ONLY_FILE);
  try {
    if (process.getuid?.() !== ROOT_USER_ID) return;
    const { uid, gid } = statSync(dirname(path));
    // By the descriptor: the folder's owner may put a link to another file in place of the path.
    fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
}
