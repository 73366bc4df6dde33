import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Starts a process that runs `stop` and removes the folder as soon as this process is gone, even when it was killed: the
 * pipe that it reads ends then. It is no child of this process, because the runner kills the children of a test that
 * takes too long. Returns what ends the guard.
 */
export function guardFolder(folder: string, stop: readonly string[]): () => void {
  const pipe = join(folder, 'alive');
  if (!Bun.spawnSync(['mkfifo', pipe]).success) throw new Error(`mkfifo cannot make ${pipe}.`);
  // Open for both, because nobody reads yet. No child gets it.
  const ours = openSync(pipe, 'r+');
  const theirs = openSync(pipe, 'r');
  const script = 'read -r line; folder=$1; shift; "$@" >/dev/null 2>&1; rm -rf "$folder"';
  Bun.spawnSync(['setsid', '--fork', 'sh', '-c', script, 'sh', folder, ...stop], {
    stdin: theirs,
    stdout: 'ignore',
    stderr: 'ignore',
    cwd: '/',
  });
  closeSync(theirs);
  return () => closeSync(ours);
}
