import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PackageFacts, packageClosure, packageFacts } from './installed-packages.ts';
import { PROJECT_ROOT, projectFile } from './project-root.ts';

/** What of somebody else is in this program, and under which license. */
export interface LicensedPart {
  /** With its version, where it has one. */
  readonly name: string;
  /** As SPDX writes it, where that is known. */
  readonly license: string;
  /** What must go with every copy. */
  readonly text: string;
}

/** Where an executable has the licenses of what it carries; a checkout has no such file. */
export const LICENSES_FILE = projectFile('licenses.json');

const LICENSE_NAME = /^(licen[sc]e|copying|notice|copyright)([._-].*)?$/i;

/** What no package of npm is, with the files that hold its license. */
const OTHER_PARTS = [
  {
    name: 'decision-1, weights derived from SmolLM2-135M-Instruct',
    license: 'Apache-2.0',
    files: ['native/models/decision-1/NOTICE', 'native/models/decision-1/LICENSE'],
  },
  { name: 'llama.cpp', license: 'MIT', files: ['src/binary/licenses/llama.cpp.txt'] },
  { name: 'Scalar API reference', license: 'MIT', files: ['src/http/assets/README.md'] },
  { name: 'Bun', license: 'MIT and others', files: ['src/binary/licenses/bun.txt'] },
  {
    name: 'GCC runtime libraries',
    license: 'GPL-3.0-or-later WITH GCC-exception-3.1',
    files: ['src/binary/licenses/gcc-runtime.txt'],
  },
] as const;

function read(path: string): string {
  return readFileSync(path, 'utf8').trim();
}

function licenseFiles(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && LICENSE_NAME.test(entry.name))
    .map(({ name }) => join(folder, name))
    .sort();
}

/** For a package without a file: what its license asks to be kept is not known better. */
function statement({ license = 'no license', homepage }: PackageFacts): string {
  const source = homepage === undefined ? '' : ` Its home is ${homepage}.`;
  return `The package has no file with its license; its package.json names ${license}.${source}`;
}

function packagePart(folder: string): LicensedPart {
  const facts = packageFacts(folder);
  const files = licenseFiles(folder);
  return {
    name: `${facts.name} ${facts.version}`,
    license: facts.license ?? 'unknown',
    text: files.length === 0 ? statement(facts) : files.map(read).join('\n\n'),
  };
}

/** The licenses of a program with these packages, given by their folders: of each package once, by its name. */
export function licensesOf(package_folders: Iterable<string>): readonly LicensedPart[] {
  const packages = new Map<string, LicensedPart>();
  for (const folder of package_folders) {
    const part = packagePart(folder);
    packages.set(part.name, part);
  }
  const others = OTHER_PARTS.map(({ name, license, files }) => ({
    name,
    license,
    text: files.map((file) => read(projectFile(file))).join('\n\n'),
  }));
  return [...others, ...[...packages.values()].sort((left, right) => (left.name < right.name ? -1 : 1))];
}

/** Of this program: what its executable was built with, or what the checkout needs to serve. */
export function licenses(): readonly LicensedPart[] {
  if (existsSync(LICENSES_FILE)) return JSON.parse(readFileSync(LICENSES_FILE, 'utf8'));
  const folders = new Set<string>();
  for (const name of Object.keys(packageFacts(PROJECT_ROOT).dependencies ?? {})) {
    for (const folder of packageClosure(name, PROJECT_ROOT)) folders.add(folder);
  }
  return licensesOf(folders);
}
