import { existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { projectFile } from '../../src/files/project-root.ts';
import { DAY_MS } from '../../src/time/clock.ts';

/**
 * The folder of `build/` of that kind that `make` has filled. It is made anew where anything is different that it is
 * made of, which decides what lies in it. Nobody sees it before it is whole.
 */
export async function madeOnce(
  kind: string,
  made_of: unknown,
  make: (folder: string) => Promise<unknown>,
): Promise<string> {
  const folder = projectFile(`build/${kind}/${Bun.hash(JSON.stringify(made_of)).toString(16)}`);
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true });
  await removeOld(dirname(folder));
  const work = await mkdtemp(`${folder}-`);
  try {
    await make(work);
    await rename(work, folder);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    // Another process of the tests may have been first; what it made is the same.
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Removes what was made yesterday or before; newer ones may be in use by other tests. */
async function removeOld(kind: string): Promise<void> {
  for (const name of await readdir(kind)) {
    const path = join(kind, name);
    const changed_ms = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    // Another process may have just put it in its place, under another name.
    if (changed_ms === undefined || changed_ms >= Date.now() - DAY_MS) continue;
    await rm(path, { recursive: true, force: true });
  }
}
