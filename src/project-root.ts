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

/** The URL of a worker's script: TypeScript in a checkout, its bundle in the unpacked executable. */
export function workerScript(path_without_suffix: string): string {
  const source = projectFile(`${path_without_suffix}.ts`);
  return existsSync(source) ? source : projectFile(`${path_without_suffix}.js`);
}
