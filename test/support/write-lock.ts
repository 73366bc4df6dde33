import { join } from 'node:path';

const HOLDER = join(import.meta.dir, 'write-lock-child.ts');

/** The database's write lock in the hands of another process. */
interface HeldWriteLock {
  /** Ends the other process's transaction; resolves when the lock is free. */
  release(): Promise<void>;
}

/** Has another process take the write lock of the database in that directory; resolves when it has it. */
export async function holdWriteLock(directory: string): Promise<HeldWriteLock> {
  const child = Bun.spawn([process.execPath, HOLDER, join(directory, 'tds.sqlite')], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { value } = await child.stdout.getReader().read();
  if (value === undefined) throw new Error('the other process did not get the write lock');
  return {
    async release() {
      child.stdin.end();
      await child.exited;
    },
  };
}
