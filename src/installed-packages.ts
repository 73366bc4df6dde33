import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What `package.json` says of a package, as far as it is read here. */
export interface PackageFacts {
  readonly name: string;
  readonly version: string;
  /** As SPDX writes it; undefined where the package does not say. */
  readonly license?: string;
  readonly homepage?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** What the package in that folder says of itself. */
export function packageFacts(folder: string): PackageFacts {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** The folder of an installed package as a package in `from` finds it; undefined where it is not installed. */
export function packageFolder(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (folder === dirname(folder)) return undefined;
  }
}

/** The folders of a package and of all that it depends on. */
export function packageClosure(name: string, from: string, found = new Set<string>()): ReadonlySet<string> {
  const folder = packageFolder(name, from);
  if (folder === undefined || found.has(folder)) return found;
  found.add(folder);
  for (const dependency of Object.keys(packageFacts(folder).dependencies ?? {}))
    packageClosure(dependency, folder, found);
  return found;
}
