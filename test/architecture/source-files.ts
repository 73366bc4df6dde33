import { basename, dirname, join } from 'node:path';

/** The root of the repository. */
export const ROOT = join(import.meta.dir, '..', '..');

/** The imports of one TypeScript file. Paths are relative to the root, with forward slashes. */
export interface SourceFile {
  readonly path: string;
  /** The files that it imports, for their types only too. */
  readonly imports: readonly string[];
  /** Those of them that it needs when it runs. */
  readonly value_imports: readonly string[];
  /** The specifiers of the imported packages. */
  readonly packages: readonly string[];
  /** The workers and child processes that it starts by the names of their files. */
  readonly starts: readonly string[];
}

const TRANSPILERS = {
  ts: new Bun.Transpiler({ loader: 'ts' }),
  tsx: new Bun.Transpiler({ loader: 'tsx' }),
};
type Loader = keyof typeof TRANSPILERS;

/** The specifiers of everything that a text imports, for its types only too. */
export function importsOf(text: string, loader: Loader = 'ts'): readonly string[] {
  return scannedImports(withTypesAsValues(text), loader);
}

function scannedImports(text: string, loader: Loader): readonly string[] {
  return TRANSPILERS[loader].scanImports(text).map(({ path }) => path);
}

/** The text without `#!` and with plain imports in place of type imports, which the transpiler leaves out. */
function withTypesAsValues(text: string): string {
  return text
    .replace(/^#!.*/, '')
    .replace(/^(import|export)\s+type(?=\s+(?:\{|\*|\w+\s+from\b))/gm, '$1')
    .replace(/^(?:import|export)\s+(?:\w+,\s*)?\{[^}]*\}\s*from\b/gm, (clause) =>
      clause.replace(/\btype\s+(?=\w)/g, ''),
    );
}

/** The names of programs in a text's string literals, by the names that files of programs have. */
export function startedPrograms(text: string): readonly string[] {
  return [...text.matchAll(/'(?:[\w-]+\/)*([\w-]+-(?:child|worker)\.ts)'/g)].map(([, name]) => name ?? '');
}

/** Every file of TypeScript in the repository's own folders, by its path. */
export async function readSourceFiles(): Promise<ReadonlyMap<string, SourceFile>> {
  const paths = await Array.fromAsync(new Bun.Glob('{src,native,db,bench,test}/**/*.{ts,tsx}').scan(ROOT));
  const files = await Promise.all(
    paths.map(async (path): Promise<SourceFile> => {
      const text = await Bun.file(join(ROOT, path)).text();
      const loader = path.endsWith('.tsx') ? 'tsx' : 'ts';
      const specifiers = importsOf(text, loader);
      const fileOf = (specifier: string) => join(dirname(path), specifier);
      const programs = startedPrograms(text);
      return {
        path,
        imports: specifiers.filter(isFile).map(fileOf),
        value_imports: scannedImports(text.replace(/^#!.*/, ''), loader).filter(isFile).map(fileOf),
        packages: specifiers.filter((specifier) => !specifier.startsWith('.')),
        starts: paths.filter((other) => other !== path && programs.includes(basename(other))),
      };
    }),
  );
  return new Map(files.map((file) => [file.path, file]));
}

function isFile(specifier: string): boolean {
  return specifier.startsWith('.') && /\.tsx?$/.test(specifier);
}

/** Every cycle of imports that a walk over the files meets, each as the list of its files. */
export function importCycles(files: ReadonlyMap<string, SourceFile>): readonly (readonly string[])[] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string) => {
    if (done.has(path)) return;
    const start = trail.indexOf(path);
    if (start >= 0) {
      cycles.push([...trail.slice(start), path]);
      return;
    }
    trail.push(path);
    files.get(path)?.imports.forEach(visit);
    trail.pop();
    done.add(path);
  };
  for (const path of files.keys()) visit(path);
  return cycles;
}

/** The files that `entries` need: the entries themselves, and all that is imported or started from there. */
export function reachedFiles(
  files: ReadonlyMap<string, SourceFile>,
  entries: readonly string[],
): ReadonlySet<string> {
  const reached = new Set(entries);
  // A set that grows is iterated to its end.
  for (const path of reached) {
    const file = files.get(path);
    for (const next of [...(file?.imports ?? []), ...(file?.starts ?? [])]) reached.add(next);
  }
  return reached;
}
