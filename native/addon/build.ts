import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { errorMessage, excerpt } from '../../src/errors/error-message.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { IS_UNPACKED, PROJECT_ROOT, projectFile } from '../../src/files/project-root.ts';
import { build_stop } from '../build-stop.ts';
import { AddonUnavailable } from '../errors.ts';
import type { Gpu } from '../gpu.ts';
import { findLibrary, type LlamaLibrary } from './library.ts';
import { bundlePath, extractLlamaSources } from './llama-sources.ts';

const SOURCES = projectFile('native/addon/src');
/** The files that a build's hash includes besides the sources. */
const SCRIPTS = ['native/addon/build.ts', 'native/addon/llama-sources.ts'].map(projectFile);
/** Built files; not under version control. */
const BUILD_DIRECTORY = projectFile('build/addon');
const ADDON_FILE = 'tds-addon.node';
/** A compiler takes some hundred megabytes. */
const COMPILERS_MAX = 8;

/** An addon, and the libraries that it was linked against. */
export interface BuiltAddon {
  readonly path: string;
  readonly library: LlamaLibrary;
  /** True if it came compiled beside its libraries. Then it is never rebuilt. */
  readonly is_prebuilt: boolean;
}

/** Returns the path of the system's C++ compiler; undefined if there is none. */
export function compilerPath(): string | undefined {
  for (const name of ['c++', 'g++', 'clang++']) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  return undefined;
}

function requireCompiler(): string {
  const compiler = compilerPath();
  if (compiler !== undefined) return compiler;
  throw new AddonUnavailable('There is no C++ compiler: install g++ or clang++.');
}

/** Returns the libraries for a device. Throws `AddonUnavailable` if no installed package has them. */
export function requireLibrary(gpu: Gpu): LlamaLibrary {
  const library = findLibrary(gpu);
  if (library === undefined) {
    throw new AddonUnavailable(
      `node-llama-cpp ships no prebuilt llama.cpp for this platform${gpu === 'auto' || !gpu ? '' : ` and ${gpu}`}.`,
    );
  }
  return library;
}

async function sourceFiles(): Promise<string[]> {
  const names = await readdir(SOURCES).catch((cause: unknown) => {
    throw new AddonUnavailable(`The addon's sources are not in ${SOURCES}.`, { cause });
  });
  return names.filter((name) => /\.(cpp|hpp)$/.test(name)).sort();
}

/** Returns the hash of all inputs of a build. Equal hashes mean equal addons. */
async function buildHash(library: LlamaLibrary): Promise<string> {
  const hash = createHash('sha256');
  for (const name of await sourceFiles())
    hash.update(name).update(await Bun.file(join(SOURCES, name)).bytes());
  for (const script of SCRIPTS) hash.update(await Bun.file(script).bytes());
  hash.update(await Bun.file(join(library.directory, '_nlcBuildMetadata.json')).bytes());
  hash.update(library.directory).update(library.link.join());
  return hash.digest('hex').slice(0, 16);
}

function linkFlags(library: LlamaLibrary): string[] {
  return [
    ...library.link.map((file) => join(library.directory, file)),
    // The loader searches beside the addon first, as in a package, then in the folder of the build.
    `-Wl,-rpath,${process.platform === 'darwin' ? '@loader_path' : '$ORIGIN'}`,
    `-Wl,-rpath,${library.directory}`,
  ];
}

const ended = new Promise<never>((_, reject) =>
  build_stop.addEventListener('abort', () => reject(new Error('The process ends.'))),
);
// Nothing is lost: each compiler under way rejects by it, and there may be none.
ended.catch(() => {});

/**
 * Resolves as `work` does. Every reason of a rejection becomes `AddonUnavailable`, so that `llama` can serve, but the end of
 * the process.
 */
async function orUnavailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof AddonUnavailable || build_stop.aborted) throw cause;
    throw new AddonUnavailable(`The addon cannot be built (${excerpt(errorMessage(cause))}).`, { cause });
  }
}

async function runCompiler(compiler: string, flags: readonly string[]): Promise<void> {
  const run = Bun.spawn([compiler, ...flags], { stdout: 'pipe', stderr: 'pipe', signal: build_stop });
  // The processes that a compiler has begun may keep its output open.
  const [errors, code] = await Promise.race([
    Promise.all([new Response(run.stderr).text(), run.exited]),
    ended,
  ]);
  if (run.signalCode !== null) throw new Error(`The C++ compiler was ended by ${run.signalCode}`);
  if (code !== 0) throw new AddonUnavailable(`The C++ compiler failed:\n${errors.slice(0, 4000)}`);
}

/** Compiles each source to an object in `directory`, several at a time. Resolves with their paths. */
async function compileObjects(
  compiler: string,
  flags: readonly string[],
  sources: readonly string[],
  directory: string,
): Promise<string[]> {
  const objectOf = (source: string) => join(directory, `${basename(source)}.o`);
  const left = sources.values();
  const compileNext = async () => {
    for (const source of left) await runCompiler(compiler, [...flags, '-c', source, '-o', objectOf(source)]);
  };
  const processes = Math.min(availableParallelism(), COMPILERS_MAX);
  const ended = await Promise.allSettled(Array.from({ length: processes }, compileNext));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
  return sources.map(objectOf);
}

/**
 * Compiles and links the addon's sources, except those in `without`, and more of the caller's, to a file of `directory`.
 * Resolves with its path. Rejects with `AddonUnavailable`.
 */
export function compileSources(
  directory: string,
  file: string,
  library: LlamaLibrary,
  given: SourceOptions,
): Promise<string> {
  return orUnavailable(() => compile(directory, file, library, given));
}

interface SourceOptions {
  readonly flags: readonly string[];
  readonly without?: readonly string[];
  readonly more?: readonly string[];
}

async function compile(
  directory: string,
  file: string,
  library: LlamaLibrary,
  given: SourceOptions,
): Promise<string> {
  const { flags, without = [], more = [] } = given;
  const compiler = requireCompiler();
  const names = await sourceFiles();
  const sources = names.filter((name) => name.endsWith('.cpp') && !without.includes(name));
  const headers = join(directory, 'include');
  await extractLlamaSources(bundlePath(), headers);
  const node_api = join(dirname(Bun.resolveSync('node-api-headers', PROJECT_ROOT)), 'include');
  const objects = await compileObjects(
    compiler,
    [
      '-std=c++17',
      // libllama has the same table of characters as `unicode-data.cpp`. As visible symbols, the two would be merged and
      // constructed twice.
      '-fvisibility=hidden',
      ...flags,
      ...['-I', headers, '-I', node_api],
    ],
    [join(headers, 'unicode-data.cpp'), ...sources.map((name) => join(SOURCES, name)), ...more],
    directory,
  );
  const path = join(directory, file);
  await runCompiler(compiler, [...flags, ...objects, ...linkFlags(library), '-o', path]);
  return path;
}

function compileAddon(directory: string, library: LlamaLibrary): Promise<string> {
  // The runtime defines Node-API's functions, which are resolved when the addon is loaded.
  const undefined_symbols = process.platform === 'darwin' ? ['-undefined', 'dynamic_lookup'] : [];
  const flags = ['-O2', '-shared', '-fPIC', ...undefined_symbols];
  return compileSources(directory, ADDON_FILE, library, { flags });
}

/** Returns true if the file exists and is not empty, as it may be after a power loss. */
function isWritten(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Flushes a file, or the names in a folder, to the disk. */
async function sync(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/**
 * Builds into `target`. If several processes build, the first to finish puts its folder in place. An existing build is
 * moved away if it is empty or `is_broken` is set.
 */
async function buildInPlace(target: string, library: LlamaLibrary, is_broken: boolean): Promise<void> {
  await mkdir(BUILD_DIRECTORY, { recursive: true });
  const directory = await mkdtemp(join(BUILD_DIRECTORY, 'build-'));
  try {
    const built = join(directory, 'built');
    await mkdir(built);
    const path = join(built, ADDON_FILE);
    await rename(await compileAddon(directory, library), path);
    await sync(path);
    await sync(built);
    if (is_broken || !isWritten(join(target, ADDON_FILE))) await moveAway(target, directory);
    await rename(built, target).catch((error: unknown) => {
      if (!isWritten(join(target, ADDON_FILE))) throw error;
    });
    await sync(BUILD_DIRECTORY);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Moves a broken build into a temporary folder. */
async function moveAway(target: string, directory: string): Promise<void> {
  await rename(target, join(directory, 'broken')).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  });
}

/** The builds under way, and those that a compiler refused: the same sources would take as long to fail again. */
const builds = new Map<string, Promise<void>>();

function buildOnce(
  target: string,
  library: LlamaLibrary,
  onBuild: () => void,
  is_broken: boolean,
): Promise<void> {
  const begun = builds.get(target);
  if (begun !== undefined) return begun;
  // A compiler may be installed meanwhile, so its lack is no failed build.
  requireCompiler();
  onBuild();
  const build = orUnavailable(() => buildInPlace(target, library, is_broken));
  builds.set(target, build);
  build.then(
    () => builds.delete(target),
    (error) => {
      // Only the compiler's own refusal has no other cause. A full disk or a lack of memory passes.
      if (error instanceof AddonUnavailable && error.cause !== undefined) builds.delete(target);
    },
  );
  return build;
}

/**
 * Returns the addon for a device: the one beside llama.cpp's libraries, or a compiled one. `onBuild` is called before
 * it is compiled, which takes a while. Sources that the compiler refused are not compiled again by this process. An executable never builds. Throws
 * `AddonUnavailable` with the missing part (a prebuilt llama.cpp, a compiler), the compiler's errors, or the system's.
 */
export function buildAddon(gpu: Gpu, onBuild: () => void = () => {}): Promise<BuiltAddon> {
  return orUnavailable(() => findOrBuild(gpu, onBuild));
}

async function findOrBuild(gpu: Gpu, onBuild: () => void): Promise<BuiltAddon> {
  const library = requireLibrary(gpu);
  const prebuilt = join(library.directory, ADDON_FILE);
  if (isWritten(prebuilt)) return { path: prebuilt, library, is_prebuilt: true };
  if (IS_UNPACKED) {
    throw new AddonUnavailable('This executable comes without an addon for this platform and device.');
  }
  const target = join(BUILD_DIRECTORY, await buildHash(library));
  const built: BuiltAddon = { path: join(target, ADDON_FILE), library, is_prebuilt: false };
  if (!isWritten(built.path)) await buildOnce(target, library, onBuild, false);
  return built;
}

/** The state of an addon. */
export type AddonState = 'prebuilt' | 'built' | 'absent' | 'unavailable';

/**
 * Returns the state of the addon for a device: it came compiled, was compiled here, would be compiled, or cannot be.
 * Builds nothing.
 */
export async function addonState(library: LlamaLibrary): Promise<AddonState> {
  if (isWritten(join(library.directory, ADDON_FILE))) return 'prebuilt';
  if (IS_UNPACKED) return 'unavailable';
  return isWritten(join(BUILD_DIRECTORY, await buildHash(library), ADDON_FILE)) ? 'built' : 'absent';
}

/** Rebuilds an addon that cannot be loaded. Throws as `buildAddon` does, and then keeps the old one. */
export async function rebuildAddon(
  { path, library }: BuiltAddon,
  onBuild: () => void = () => {},
): Promise<void> {
  await buildOnce(dirname(path), library, onBuild, true);
}

if (import.meta.main) {
  try {
    console.log((await buildAddon('auto')).path);
  } catch (error) {
    if (!(error instanceof AddonUnavailable)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
