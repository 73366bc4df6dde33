/**
 * Builds `dist/tds-<platform>`: one executable with the program, its libraries and the embedded weights, which needs
 * nothing of the machine but the C library. Run it by `bun run build`.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { cp, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { buildAddon } from '../../native/addon/build.ts';
import { version } from '../../package.json' with { type: 'json' };
import { PROJECT_ROOT, projectFile } from '../project-root.ts';
import type { PackedFile } from './unpack.ts';

const DIST = projectFile('dist');
const STAGE = join(DIST, 'stage');
const ARCHIVE = 'program.tar.zst';
const MANIFEST = 'program.json';

/** What is started by its own path. */
const ENTRY_POINTS = ['src/main.ts', 'db/sqlite/checkpoint-worker.ts', 'src/ops/history-worker.ts'];
/** What the program reads beside its code. */
const DATA = ['db/sqlite/migrations', 'src/http/assets', 'native/models'];
/** Loaded through its own files, because it finds its libraries from where they lie. */
const UNBUNDLED = 'node-llama-cpp';
/** Sources of llama.cpp, for compiling it: the executable carries what they become. */
const LEFT_OUT = ['llama/gitRelease.bundle', 'llama/addon', 'llama/cmake', 'llama/toolchains', 'llama/xpack'];
/** What the engine's libraries need besides the C library. */
const CPP_RUNTIME = ['libstdc++.so.6', 'libgcc_s.so.1'];

async function bundle(): Promise<void> {
  const built = await Bun.build({
    entrypoints: ENTRY_POINTS.map(projectFile),
    root: PROJECT_ROOT,
    outdir: STAGE,
    target: 'bun',
    splitting: true,
    external: [UNBUNDLED],
    throw: false,
  });
  if (!built.success) throw new AggregateError(built.logs, 'The program cannot be bundled.');
}

/** The folder of an installed package as a package in `from` finds it; undefined where it is not installed. */
function packageFolder(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (folder === dirname(folder)) return undefined;
  }
}

/** The folders of a package and of all that it depends on. */
function packageClosure(name: string, from: string, found = new Set<string>()): ReadonlySet<string> {
  const folder = packageFolder(name, from);
  if (folder === undefined || found.has(folder)) return found;
  found.add(folder);
  const { dependencies = {} }: { dependencies?: Record<string, string> } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  for (const dependency of Object.keys(dependencies)) packageClosure(dependency, folder, found);
  return found;
}

async function copyPackage(folder: string): Promise<void> {
  const place = relative(PROJECT_ROOT, folder);
  await cp(realpathSync(folder), join(STAGE, place), {
    recursive: true,
    filter: (path) => {
      const inside = relative(realpathSync(folder), path);
      return !inside.startsWith('node_modules') && !LEFT_OUT.includes(inside);
    },
  });
}

/** A library of the C++ compiler's runtime, as the compiler finds it. */
async function runtimeLibrary(name: string): Promise<string> {
  const path = (await Bun.$`c++ -print-file-name=${name}`.text()).trim();
  if (!path.startsWith('/')) throw new Error(`The compiler does not find ${name}.`);
  return realpathSync(path);
}

/** The addon and the C++ runtime beside llama.cpp's libraries, where their search path begins. */
async function copyEngine(): Promise<string> {
  const { path, library } = await buildAddon(false);
  const place = join(STAGE, relative(PROJECT_ROOT, library.directory));
  await cp(path, join(place, 'tds-engine.node'));
  for (const name of CPP_RUNTIME) await cp(await runtimeLibrary(name), join(place, name));
  return library.directory;
}

async function packedFiles(): Promise<PackedFile[]> {
  const names = await readdir(STAGE, { recursive: true, withFileTypes: true });
  const files: PackedFile[] = [];
  for (const entry of names.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const bytes = await Bun.file(path).bytes();
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    files.push({ path: relative(STAGE, path), size_bytes: bytes.byteLength, sha256 });
  }
  return files.sort((left, right) => (left.path < right.path ? -1 : 1));
}

async function writeArchive(files: readonly PackedFile[]): Promise<string> {
  const contents: Record<string, Uint8Array> = {};
  for (const { path } of files) contents[path] = await Bun.file(join(STAGE, path)).bytes();
  const tar = await new Bun.Archive(contents).bytes();
  await Bun.write(join(DIST, ARCHIVE), Bun.zstdCompressSync(tar, { level: 9 }));
  return createHash('sha256').update(tar).digest('hex');
}

async function commit(): Promise<string> {
  const asked = await Bun.$`git rev-parse --short=12 HEAD`.cwd(PROJECT_ROOT).nothrow().quiet();
  return asked.exitCode === 0 ? asked.stdout.toString().trim() : 'unknown';
}

async function compile(): Promise<string> {
  const target = join(DIST, `tds-${process.platform}-${process.arch}`);
  const compiled = await Bun.build({
    entrypoints: [projectFile('src/binary/launcher.ts')],
    compile: {
      outfile: target,
      assets: [join(DIST, ARCHIVE), join(DIST, MANIFEST)],
      // Whoever starts the program elsewhere must not change what it does by the files of that folder.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      // How the unpacked packages find each other.
      autoloadPackageJson: true,
    },
    throw: false,
  });
  if (!compiled.success) throw new AggregateError(compiled.logs, 'The executable cannot be built.');
  return target;
}

async function build(): Promise<string> {
  await rm(STAGE, { recursive: true, force: true });
  await mkdir(STAGE, { recursive: true });
  await bundle();
  for (const folder of DATA) await cp(projectFile(folder), join(STAGE, folder), { recursive: true });
  for (const folder of packageClosure(UNBUNDLED, PROJECT_ROOT)) await copyPackage(folder);
  const platform = packageFolder(`@node-llama-cpp/${process.platform}-${process.arch}`, PROJECT_ROOT);
  if (platform === undefined) throw new Error('node-llama-cpp has no package for this platform.');
  await copyPackage(platform);
  await copyEngine();
  await Bun.write(join(STAGE, 'package.json'), JSON.stringify({ name: 'tds', version, type: 'module' }));
  await Bun.write(join(STAGE, 'build.json'), JSON.stringify({ version, commit: await commit() }));
  const files = await packedFiles();
  const sha256 = await writeArchive(files);
  await Bun.write(join(DIST, MANIFEST), JSON.stringify({ sha256, files }));
  const target = await compile();
  await rm(STAGE, { recursive: true, force: true });
  return target;
}

console.log(await build());
