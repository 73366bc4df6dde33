import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CreditContext } from '../payments/credit.ts';
import { CommandFailed } from './command-failed.ts';
import { initialize } from './initialize.ts';

/** The file in the data directory that holds the first API key where no terminal could show it. */
const FIRST_KEY_FILE = 'first-api-key.txt';
const FILE_MODE = 0o600;

/**
 * Fills an empty database and writes its first key to a file of the data directory, for the owner only: both or
 * neither. Returns the file's absolute path; null when the database was filled before. Throws `CommandFailed`.
 */
export function initializeIntoFile(directory: string, context: CreditContext): string | null {
  const written: string[] = [];
  try {
    initialize(context, (key) => written.push(writeFirstKey(directory, key)));
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw error;
  }
  return written[0] ?? null;
}

/**
 * Writes the key to a new file, down to the disk, and returns its path. A file that is there already is never written
 * over: it may hold the only copy of another key.
 */
function writeFirstKey(directory: string, key: string): string {
  const path = resolve(join(directory, FIRST_KEY_FILE));
  let file: number;
  try {
    file = openSync(path, 'wx', FILE_MODE);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new CommandFailed(
      code === 'EEXIST'
        ? `${path} is left from an earlier start: move it away and start again.`
        : `${path}, which the first API key belongs in, cannot be written (${code}).`,
      { cause: error },
    );
  }
  try {
    writeSync(file, `${key}\n`);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw new CommandFailed(`${path}, which the first API key belongs in, cannot be written.`, {
      cause: error,
    });
  } finally {
    closeSync(file);
  }
  return path;
}
