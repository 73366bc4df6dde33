import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { realpath, rename, rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { CommandFailed } from './command-failed.ts';

/**
 * Writes a file that appears only once it is complete, in place of the one that a symbolic link names. A pipe or a
 * device is written into. Throws `CommandFailed`, and then leaves no file.
 */
export async function writeWholeFile(
  path: string,
  content: string | AsyncIterable<string>,
  mode?: number,
): Promise<void> {
  let partial: string | null = null;
  try {
    const file = await regularFile(path);
    if (file === null) return await pipeline(Readable.from(content), createWriteStream(path));
    partial = `${file}.${randomUUID()}.partial`;
    await pipeline(Readable.from(content), createWriteStream(partial, { flags: 'wx', mode }));
    await rename(partial, file);
  } catch (error) {
    if (partial !== null) await rm(partial, { force: true });
    // Other failures are those of the content.
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    const code = systemErrorCode(error);
    throw new CommandFailed(`${path} cannot be written (${code}): name another file with --output.`, {
      cause: error,
    });
  }
}

/** Returns the regular file at a path, which need not be there yet; null for a pipe, a device or a folder. */
async function regularFile(path: string): Promise<string | null> {
  try {
    return (await stat(path)).isFile() ? await realpath(path) : null;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return path;
    throw error;
  }
}
