import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing } from '../support/postgres.ts';

/** Returns true if a process of that id runs. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** The ids of the processes that a process has started and that still run. */
function childrenOf(pid: number): string {
  // Not from the files of its threads, of which one may end while they are read.
  return Bun.spawnSync(['ps', '-o', 'pid=', '--ppid', String(pid)]).stdout.toString();
}

describe.skipIf(isPostgresMissing())('a server of the tests', () => {
  test('ends with the process that started it, also when that was killed, and leaves nothing', async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'server-child.ts')], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    let folder = '';
    let pid = 0;
    try {
      const { value } = await child.stdout.getReader().read();
      folder = new TextDecoder().decode(value).trim();
      pid = Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
      expect(isRunning(pid)).toBe(true);
      // The runner of tests kills the children of a test that takes too long: nothing that cleans up may be one.
      expect(childrenOf(child.pid)).toBe('');
    } finally {
      child.kill('SIGKILL');
      await child.exited;
    }
    // Nobody tells when the guard is done: the test's own deadline bounds the wait.
    await eventually(() => !existsSync(folder) && !isRunning(pid));
  });
});
