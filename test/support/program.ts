import { statSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram } from '../../src/binary/bundle.ts';
import { PROJECT_ROOT, projectFile } from '../../src/files/project-root.ts';
import { madeOnce } from './made-once.ts';

/** Everything that a bundle is made of. A change of any file's time or size makes another bundle. */
const SOURCES = ['{package.json,bun.lock}', '{src,db,native}/**/*.ts'];

/** Bundles the program where it has changed, and returns the bundle's path. */
async function bundledProgram(): Promise<string> {
  const paths = SOURCES.flatMap((glob) => [...new Bun.Glob(glob).scanSync(PROJECT_ROOT)].sort());
  const states = paths.map((path) => {
    const { mtimeMs, size } = statSync(projectFile(path));
    return [path, mtimeMs, size];
  });
  return join(await madeOnce('program', states, bundleProgram), 'src/main.js');
}

/**
 * The program, which tests start as a process of its own: bundled as in the executable, because the 700 modules of
 * the sources take half of a command's CPU time.
 */
export const MAIN = await bundledProgram();

/** The program's source, for the tests of how it starts from a checkout. */
export const SOURCE = projectFile('src/main.ts');
