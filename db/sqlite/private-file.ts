import { chownSync, closeSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { OWNER_ONLY_FILE, ROOT_USER_ID } from '../../src/file-permissions.ts';
import { systemErrorCode } from '../../src/system-error-code.ts';

/**
 * Makes an empty file that its owner alone can read and write. Made by root, it belongs to the owner of its folder, so
 * that a command of the administrator does not lock the server out. Returns whether it made the file: one that is there
 * is not even opened, because closing it would drop this process's locks on it. Throws what the file system throws.
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
