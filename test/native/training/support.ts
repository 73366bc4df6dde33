import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../architecture/source-files.ts';

/** The folder of the training code, from which `python -m decision_training` runs. */
export const TRAINING = join(ROOT, 'native/training');

/** A Python that can run the training code's standard-library parts (`requires-python`); null for none. */
export const PYTHON = findPython();

function findPython(): string | null {
  const python = Bun.which('python3');
  if (python === null) return null;
  const is_new = 'import sys; sys.exit(sys.version_info < (3, 11))';
  return Bun.spawnSync([python, '-c', is_new]).exitCode === 0 ? python : null;
}

/** The result of a Python program. */
export interface PythonRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Returns the environment of Python with the training code on its path. Compiled files are kept outside of the
 * checkout, for the next run.
 */
export function pythonEnvironment(): Record<string, string | undefined> {
  const PYTHONPYCACHEPREFIX = join(tmpdir(), `tds-compiled-python-${process.getuid?.()}`);
  return { ...process.env, PYTHONPATH: TRAINING, PYTHONPYCACHEPREFIX };
}

/** Runs Python with the training code on its path. */
export async function runPython(
  python: string,
  args: readonly string[],
  stdin: string | null = null,
): Promise<PythonRun> {
  const child = Bun.spawn([python, ...args], {
    env: pythonEnvironment(),
    stdin: stdin === null ? 'ignore' : new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}
