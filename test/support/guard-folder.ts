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
  const guard = ['sh', '-c', script, 'sh', folder, ...stop];
  const options = { stdin: theirs, stdout: 'ignore', stderr: 'ignore', cwd: '/' } as const;
  // macOS has no setsid: there the guard is a child.
  if (Bun.which('setsid') === null) Bun.spawn(guard, options).unref();
  else Bun.spawnSync(['setsid', '--fork', ...guard], options);
  closeSync(theirs);
  return () => closeSync(ours);
}
