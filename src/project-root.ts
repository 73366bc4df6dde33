import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The nearest folder at or above `directory` that has a `package.json`. */
function packageRoot(directory: string): string {
  for (let folder = directory; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw new Error(`There is no package.json above ${directory}.`);
  }
}

/**
 * The folder of this program's files: the checkout, or what the executable has unpacked. Bundled modules lie elsewhere
 * than their sources, so that a path beside a source is found from here.
 */
export const PROJECT_ROOT = packageRoot(import.meta.dir);

/** The absolute path of a file of this program, given from the root. */
export function projectFile(path: string): string {
  return join(PROJECT_ROOT, path);
}

/** The path of a worker's script, given by its source: TypeScript in a checkout, its bundle in an executable. */
export function workerScript(source_path: string): string {
  const source = projectFile(source_path);
  return existsSync(source) ? source : source.replace(/\.ts$/, '.js');
}

/** What an executable says of its build; a checkout has no such file. */
export const BUILD_FILE = projectFile('build.json');

/** Whether this program was unpacked by its executable, so that nothing of it is compiled or can be restored by git. */
export const IS_UNPACKED = existsSync(BUILD_FILE);
