import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns the nearest folder at or above `directory` that has a `package.json`. */
function packageRoot(directory: string): string {
  for (let folder = directory; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${directory}.`);
  }
}

/**
 * The folder of this program's files: the checkout, or the folder that the executable unpacked. Paths start
 * here, because bundled modules lie elsewhere than their sources.
 */
export const PROJECT_ROOT = packageRoot(import.meta.dir);

/** Returns the absolute path of a file of this program, given from the root. */
export function projectFile(path: string): string {
  return join(PROJECT_ROOT, path);
}

/**
 * Returns the path of a worker's script: its TypeScript source in a checkout, its bundle in an executable.
 */
export function workerScript(source_path: string): string {
  const source = projectFile(source_path);
  return existsSync(source) ? source : source.replace(/\.ts$/, '.js');
}

/** The build information of an executable; a checkout has no such file. */
export const BUILD_FILE = projectFile('build.json');

/** True if an executable unpacked this program: nothing of it is compiled, and git cannot restore it. */
export const IS_UNPACKED = existsSync(BUILD_FILE);
