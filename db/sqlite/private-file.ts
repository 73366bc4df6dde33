import { chownSync, closeSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { OWNER_ONLY_FILE, ROOT_USER_ID } from '../../src/files/file-permissions.ts';

/**
 * Creates an empty file that only its owner can read and write. If root creates it, it gets the folder's owner, so that
 * the server can use it. Returns false if the file exists. It does not open such a file, because closing it would drop
 * this process's locks on it. Throws the file system's errors.
 */
export function makePrivateFile(path: string): boolean {
  try {
    closeSync(openSync(path, 'ax', OWNER_ONLY_FILE));
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return false;
    throw error;
  }
  if (process.getuid?.() === ROOT_USER_ID) {
    const { uid, gid } = statSync(dirname(path));
    chownSync(path, uid, gid);
  }
  return true;
}
