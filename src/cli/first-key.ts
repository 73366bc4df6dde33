import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { AccountContext } from '../access/context.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OWNER_ONLY_FILE } from '../files/file-permissions.ts';
import { CommandFailed } from './command-failed.ts';
import { type Initialized, initialize, isInitialized } from './initialize.ts';

/** The file in the data directory with the first API key, where no terminal could show it. */
const FIRST_KEY_FILE = 'first-api-key.txt';

/**
 * Fills an empty database and writes its first key to a file of the data directory, for the owner only: both
 * or neither. Returns the file's absolute path; null when the database was filled before. Throws
 * `CommandFailed`.
 */
export async function initializeIntoFile(
  directory: string,
  context: AccountContext,
  owner?: string,
): Promise<string | null> {
  if (await isInitialized(context.store)) return null;
  const path = resolve(join(directory, FIRST_KEY_FILE));
  const file = createKeyFile(path);
  let created = false;
  try {
    const keep = ({ key }: Initialized) => writeKey(file, path, key);
    created = (await initialize(context, { owner, keep })) !== null;
  } finally {
    closeSync(file);
    if (!created) rmSync(path, { force: true });
  }
  return created ? path : null;
}

/** Creates the file, and fails if it exists, because that may be the only copy of another key. */
function createKeyFile(path: string): number {
  try {
    return openSync(path, 'wx', OWNER_ONLY_FILE);
  } catch (error) {
    const code = systemErrorCode(error) ?? error;
    throw new CommandFailed(
      code === 'EEXIST'
        ? `${path} is left from an earlier start: move it away and start again.`
        : `${path}, which the first API key belongs in, cannot be written (${code}).`,
      { cause: error },
    );
  }
}

/** Writes the key to disk, replacing that of a transaction that did not commit. */
function writeKey(file: number, path: string, key: string): void {
  try {
    ftruncateSync(file);
    writeSync(file, `${key}\n`, 0);
    fsyncSync(file);
  } catch (error) {
    throw new CommandFailed(`${path}, which the first API key belongs in, cannot be written.`, {
      cause: error,
    });
  }
}
