import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
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
    partial = partialOf(file);
    await pipeline(Readable.from(content), createWriteStream(partial, { flags: 'wx', mode }));
    await rename(partial, file);
  } catch (error) {
    if (partial !== null) await rm(partial, { force: true });
    // Other failures are those of the content.
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw unwritable(path, error);
  }
}

/** Throws `CommandFailed` where `writeWholeFile` could not write that file. Commands call it before long work. */
export async function requireWritable(path: string): Promise<void> {
  try {
    const file = await regularFile(path);
    if (file === null) {
      // It fails for a folder. A pipe is not opened, because that would wait for its reader.
      if ((await stat(path)).isDirectory()) await open(path, 'r+');
      return;
    }
    const partial = partialOf(file);
    try {
      await (await open(partial, 'wx')).close();
    } finally {
      await rm(partial, { force: true });
    }
  } catch (error) {
    throw unwritable(path, error);
  }
}

function partialOf(file: string): string {
  return `${file}.${randomUUID()}.partial`;
}

function unwritable(path: string, cause: unknown): CommandFailed {
  return new CommandFailed(
    `${path} cannot be written (${systemErrorCode(cause)}): name another file with --output.`,
    { cause },
  );
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
