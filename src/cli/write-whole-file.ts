import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { CommandFailed } from './command-failed.ts';

/** Writes a file that appears only once it is complete. Throws `CommandFailed`, and then leaves no file. */
export async function writeWholeFile(path: string, content: string): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  try {
    await writeFile(partial, content);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw new CommandFailed(`${path} cannot be written: name another file with --output.`, { cause: error });
  }
}
