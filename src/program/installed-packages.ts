import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The fields of `package.json` that this program reads. */
export interface PackageFacts {
  readonly name: string;
  readonly version: string;
  /** The SPDX expression; undefined where the package states none. */
  readonly license?: string;
  readonly homepage?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Reads the `package.json` in that folder. */
export function packageFacts(folder: string): PackageFacts {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/**
 * Returns the folder of an installed package, as Node resolves it from `from`; undefined where it is not
 * installed.
 */
export function packageFolder(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (folder === dirname(folder)) return undefined;
  }
}

/** Returns the folders of a package and of all its dependencies. */
export function packageClosure(name: string, from: string, found = new Set<string>()): ReadonlySet<string> {
  const folder = packageFolder(name, from);
  if (folder === undefined || found.has(folder)) return found;
  found.add(folder);
  for (const dependency of Object.keys(packageFacts(folder).dependencies ?? {}))
    packageClosure(dependency, folder, found);
  return found;
}
