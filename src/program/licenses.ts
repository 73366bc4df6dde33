import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT, projectFile } from '../files/project-root.ts';
import { type PackageFacts, packageClosure, packageFacts } from './installed-packages.ts';

/** A third party's part of this program, with its license. */
export interface LicensedPart {
  /** The name, with the version where there is one. */
  readonly name: string;
  /** The SPDX expression, where it is known. */
  readonly license: string;
  /** The text that must accompany every copy. */
  readonly text: string;
}

/** The licenses of an executable's parts; a checkout has no such file. */
export const LICENSES_FILE = projectFile('licenses.json');

const LICENSE_NAME = /^(licen[sc]e|copying|notice|copyright)([._-].*)?$/i;

/** The parts that are no npm package, with their license files. */
const OTHER_PARTS = [
  {
    name: 'decision-1, weights derived from SmolLM2-135M-Instruct',
    license: 'Apache-2.0',
    files: ['native/models/decision-1/NOTICE', 'native/models/decision-1/LICENSE'],
  },
  { name: 'llama.cpp', license: 'MIT', files: ['src/binary/licenses/llama.cpp.txt'] },
  { name: 'Bun', license: 'MIT and others', files: ['src/binary/licenses/bun.txt'] },
  {
    name: 'GCC runtime libraries',
    license: 'GPL-3.0-or-later WITH GCC-exception-3.1',
    files: ['src/binary/licenses/gcc-runtime.txt'],
  },
  {
    name: 'The most common passwords of @zxcvbn-ts/language-common',
    license: 'MIT',
    files: ['src/binary/licenses/zxcvbn-ts.txt'],
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

/** Returns the text for a package without a license file: only its `package.json` names a license. */
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

/** Returns the licenses of the packages in these folders, each package once, sorted by name. */
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

/**
 * Returns the licenses of this program: those of the executable's build, or of the packages that serving
 * needs.
 */
export function licenses(): readonly LicensedPart[] {
  if (existsSync(LICENSES_FILE)) return JSON.parse(readFileSync(LICENSES_FILE, 'utf8'));
  const folders = new Set<string>();
  for (const name of Object.keys(packageFacts(PROJECT_ROOT).dependencies ?? {})) {
    for (const folder of packageClosure(name, PROJECT_ROOT)) folders.add(folder);
  }
  return licensesOf(folders);
}
