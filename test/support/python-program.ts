import { join } from 'node:path';

/** Why a program in Python cannot be run on this machine. */
export class PythonMissing extends Error {
  override readonly name = 'PythonMissing';
}

/**
 * Installs packages from PyPI into an environment of their own in `directory`, and returns the path of a program of
 * theirs. Rejects with `PythonMissing` where there is no Python, or no PyPI.
 */
export async function installPythonProgram(
  directory: string,
  program: string,
  packages: readonly string[],
): Promise<string> {
  const python = Bun.which('python3');
  if (python === null) throw new PythonMissing('there is no python3.');
  const environment = join(directory, 'environment');
  if (!(await succeeds([python, '-m', 'venv', environment]))) {
    throw new PythonMissing('python3 cannot make a virtual environment.');
  }
  // Python compiles what it imports, which is a small part of what is installed.
  const pip = [
    join(environment, 'bin', 'python'),
    '-m',
    'pip',
    'install',
    '--quiet',
    '--quiet',
    '--no-compile',
  ];
  if (!(await succeeds([...pip, ...packages]))) {
    throw new PythonMissing(`${packages.join(' and ')} cannot be installed from PyPI.`);
  }
  return join(environment, 'bin', program);
}

async function succeeds(command: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([...command], { stdout: 'ignore', stderr: 'inherit' });
  return (await child.exited) === 0;
}
