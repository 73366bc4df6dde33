import { existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundleProgram } from '../../src/binary/bundle.ts';
import { PROJECT_ROOT, projectFile } from '../../src/files/project-root.ts';
import { DAY_MS } from '../../src/time/clock.ts';

/** Everything that a bundle is made of. A change of any file's time or size makes another bundle. */
const SOURCES = ['{package.json,bun.lock}', '{src,db,native}/**/*.ts'];

/** Removes yesterday's bundles; a newer one may be in use by other tests. */
async function removeOld(bundles: string): Promise<void> {
  for (const name of await readdir(bundles)) {
    const path = join(bundles, name);
    if (statSync(path).mtimeMs < Date.now() - DAY_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Bundles the program where it has changed, and returns the bundle's path. */
async function bundledProgram(): Promise<string> {
  const paths = SOURCES.flatMap((glob) => [...new Bun.Glob(glob).scanSync(PROJECT_ROOT)].sort());
  const states = paths.map((path) => {
    const { mtimeMs, size } = statSync(projectFile(path));
    return [path, mtimeMs, size];
  });
  const folder = projectFile(`build/program/${Bun.hash(JSON.stringify(states)).toString(16)}`);
  if (!existsSync(folder)) {
    await mkdir(dirname(folder), { recursive: true });
    await removeOld(dirname(folder));
    const work = await mkdtemp(`${folder}-`);
    await bundleProgram(work);
    // Another process of the tests may have been first; its bundle is the same.
    await rename(work, folder).catch(() => rm(work, { recursive: true }));
  }
  return join(folder, 'src/main.js');
}

/**
 * The program, which tests start as a process of its own: bundled as in the executable, because the 700 modules of
 * the sources take half of a command's CPU time.
 */
export const MAIN = await bundledProgram();

/** The program's source, for the tests of how it starts from a checkout. */
export const SOURCE = projectFile('src/main.ts');
