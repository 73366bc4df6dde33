/**
 * Builds `dist/tds-<platform>`: one executable with the program, its libraries, the compiled addon and the
 * embedded weights. It needs only the C library of the machine. Run it by `bun run build`; `--cuda` adds
 * NVIDIA's libraries in an archive beside it, `--arch` builds for another CPU.
 */
import { existsSync, realpathSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compiledAddon } from '../../native/engine.ts';
import { bundlePages, STAGED_PAGES } from '../console/bundle.ts';
import { PROJECT_ROOT, projectFile } from '../files/project-root.ts';
import { buildInfo } from '../program/build-info.ts';
import { packageClosure, packageFolder } from '../program/installed-packages.ts';
import { LICENSES_FILE, licensesOf } from '../program/licenses.ts';
import { bundleProgram, UNBUNDLED } from './bundle.ts';
import { ARCHIVE_NAME, type EmbeddedManifest, MANIFEST_NAME } from './embedded-files.ts';
import { type PackedFile, sha256Of } from './unpack.ts';

/** The target of a build. */
interface Target {
  readonly name: string;
  readonly arch: 'x64' | 'arm64';
  readonly cuda: boolean;
}

const DIST = projectFile('dist');
const COMPRESSION_LEVEL = 9;

/** The files that the program reads beside its code. */
const DATA = [
  'db/sqlite/migrations',
  'db/postgres/migrations',
  'src/docs/assets',
  'src/docs/pages',
  'src/deploy',
  'native/models',
];
/** The packages of node-llama-cpp's engine for NVIDIA's devices: its library, and NVIDIA's. */
const CUDA_PLATFORMS = ['linux-x64-cuda', 'linux-x64-cuda-ext'] as const;
/** The sources of llama.cpp; the executable has the compiled libraries. */
const LEFT_OUT = ['llama/gitRelease.bundle', 'llama/addon', 'llama/cmake', 'llama/toolchains', 'llama/xpack'];
/** Files that only people and compilers read; licences stay. */
const UNREAD = /\.(map|d\.[cm]?ts|md|h|tsbuildinfo)$/;
/** The libraries that the addon and llama.cpp need besides the C library. */
const CPP_RUNTIME = ['libstdc++.so.6', 'libgcc_s.so.1'];

/** The package of a file of the bundle; a package may be inside another one. */
const PACKAGE_FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/** Bundles the program; returns the folders of the bundled packages. */
async function bundle(stage: string): Promise<ReadonlySet<string>> {
  const built = await bundleProgram(stage);
  const inputs = Object.values(built.metafile?.outputs ?? {}).flatMap((output) =>
    Object.entries(output.inputs),
  );
  const folders = inputs
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .flatMap(([path]) => PACKAGE_FOLDER.exec(resolve(path)) ?? []);
  // Without this check, missing licenses would go unnoticed.
  if (folders.length === 0) throw new Error('The bundle does not say what it is made of.');
  return new Set(folders);
}

async function copyPackage(folder: string, stage: string): Promise<void> {
  const source = realpathSync(folder);
  await cp(source, join(stage, relative(PROJECT_ROOT, folder)), {
    recursive: true,
    filter: (path) => {
      const inside = relative(source, path);
      return !inside.startsWith('node_modules') && !LEFT_OUT.includes(inside) && !UNREAD.test(inside);
    },
  });
}

/** Copies a platform package of node-llama-cpp; returns its folder in the stage. */
async function copyPlatform(platform: string, stage: string): Promise<string> {
  const folder = packageFolder(`@node-llama-cpp/${platform}`, PROJECT_ROOT);
  if (folder === undefined) throw new Error(`@node-llama-cpp/${platform} is not installed.`);
  await copyPackage(folder, stage);
  return join(stage, relative(PROJECT_ROOT, folder));
}

/** Returns a runtime library of the C++ compiler, as the compiler finds it. */
async function runtimeLibrary(name: string): Promise<string> {
  const path = (await Bun.$`c++ -print-file-name=${name}`.text()).trim();
  if (!path.startsWith('/')) throw new Error(`The compiler does not find ${name}.`);
  return realpathSync(path);
}

/**
 * Returns the addon's bytes, changed so that it looks for libraries only beside itself. On another machine,
 * anybody may own the folder that it was linked against.
 */
async function withoutBuildPath(path: string, library_directory: string): Promise<Uint8Array> {
  const bytes = Buffer.from(await Bun.file(path).bytes());
  const searched = Buffer.from(`$ORIGIN:${library_directory}\0`);
  const start = bytes.indexOf(searched);
  if (start < 0) throw new Error(`${path} does not look for libraries where it was linked to.`);
  return bytes.fill(0, start + '$ORIGIN'.length, start + searched.byteLength);
}

/**
 * Copies the addon and the C++ runtime beside llama.cpp's libraries, where all of them are searched first.
 */
async function copyAddon(gpu: 'cuda' | false, package_folder: string): Promise<void> {
  const { path, library } = await compiledAddon(gpu);
  const place = join(package_folder, 'bins', relative(dirname(library.directory), library.directory));
  await Bun.write(join(place, 'tds-addon.node'), await withoutBuildPath(path, library.directory));
  for (const name of CPP_RUNTIME) await cp(await runtimeLibrary(name), join(place, name));
}

async function packedFiles(stage: string): Promise<PackedFile[]> {
  const names = await readdir(stage, { recursive: true, withFileTypes: true });
  const files: PackedFile[] = [];
  for (const entry of names.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const bytes = await Bun.file(path).bytes();
    files.push({ path: relative(stage, path), size_bytes: bytes.byteLength, sha256: sha256Of(bytes) });
  }
  return files.sort((left, right) => (left.path < right.path ? -1 : 1));
}

async function writeArchive(stage: string, archive: string): Promise<readonly PackedFile[]> {
  const files = await packedFiles(stage);
  const contents: Record<string, Uint8Array> = {};
  for (const { path } of files) contents[path] = await Bun.file(join(stage, path)).bytes();
  const tar = await new Bun.Archive(contents).bytes();
  await Bun.write(archive, Bun.zstdCompressSync(tar, { level: COMPRESSION_LEVEL }));
  return files;
}

/** Copies the program's own files, its packages, and the addon for the CPU. */
async function stageProgram(stage: string, { arch, cuda }: Target): Promise<void> {
  const bundled = await bundle(stage);
  for (const folder of DATA) {
    if (existsSync(projectFile(folder)))
      await cp(projectFile(folder), join(stage, folder), { recursive: true });
  }
  for (const { name, body } of await bundlePages()) await Bun.write(join(stage, STAGED_PAGES, name), body);
  const unbundled = packageClosure(UNBUNDLED, PROJECT_ROOT);
  for (const folder of unbundled) await copyPackage(folder, stage);
  const platform = await copyPlatform(`linux-${arch}`, stage);
  const platforms = [`linux-${arch}`, ...(cuda ? CUDA_PLATFORMS : [])].flatMap(
    (name) => packageFolder(`@node-llama-cpp/${name}`, PROJECT_ROOT) ?? [],
  );
  const parts = licensesOf([...bundled, ...unbundled, ...platforms]);
  await Bun.write(join(stage, relative(PROJECT_ROOT, LICENSES_FILE)), JSON.stringify(parts));
  // There is no compiler for another CPU here, so node-llama-cpp is used there.
  if (arch === process.arch) await copyAddon(false, platform);
  const { version, commit } = buildInfo();
  await Bun.write(join(stage, 'package.json'), JSON.stringify({ name: 'tds', version, type: 'module' }));
  // A build in a container has no repository.
  await Bun.write(join(stage, 'build.json'), JSON.stringify({ commit: process.env.TDS_COMMIT || commit }));
}

/** Packs the additional files for NVIDIA's devices into the archive beside the executable. */
async function packCuda(work: string, archive: string): Promise<readonly PackedFile[]> {
  const stage = join(work, 'cuda');
  await mkdir(stage);
  const [addon, libraries] = CUDA_PLATFORMS;
  await copyAddon('cuda', await copyPlatform(addon, stage));
  await copyPlatform(libraries, stage);
  return await writeArchive(stage, join(DIST, archive));
}

async function compile(work: string, { name, arch }: Target): Promise<string> {
  const outfile = join(DIST, name);
  const compiled = await Bun.build({
    entrypoints: [projectFile('src/binary/launcher.ts')],
    compile: {
      target: arch === 'x64' ? 'bun-linux-x64' : 'bun-linux-arm64',
      outfile,
      assets: [join(work, ARCHIVE_NAME), join(work, MANIFEST_NAME)],
      // Files in the current folder must not change the program.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      // The unpacked packages find each other by it.
      autoloadPackageJson: true,
    },
    throw: false,
  });
  if (!compiled.success) throw new AggregateError(compiled.logs, 'The executable cannot be built.');
  return outfile;
}

/** Builds the executable, and the archive beside it for CUDA; returns the executable's path. */
async function build(target: Target): Promise<string> {
  await mkdir(DIST, { recursive: true });
  const work = await mkdtemp(join(DIST, 'build-'));
  try {
    const stage = join(work, 'program');
    await mkdir(stage);
    await stageProgram(stage, target);
    const libraries_archive = target.cuda ? `${target.name}-libraries.tar.zst` : null;
    const files = [
      ...(await writeArchive(stage, join(work, ARCHIVE_NAME))),
      ...(libraries_archive === null ? [] : await packCuda(work, libraries_archive)),
    ];
    const sha256 = sha256Of(JSON.stringify(files));
    const manifest: EmbeddedManifest = { sha256, files, libraries_archive };
    await Bun.write(join(work, MANIFEST_NAME), JSON.stringify(manifest));
    return await compile(work, target);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Parses the command line. Throws for targets that cannot be built here. */
function targetOf(args: readonly string[]): Target {
  const { values } = parseArgs({
    args: [...args],
    options: { arch: { type: 'string', default: process.arch }, cuda: { type: 'boolean', default: false } },
  });
  const { arch, cuda } = values;
  if (process.platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64') || (cuda && arch !== 'x64')) {
    throw new Error('Executables are built on Linux for x64 and arm64, and for CUDA on x64.');
  }
  return { name: `tds-linux-${arch}${cuda ? '-cuda' : ''}`, arch, cuda };
}

console.log(await build(targetOf(process.argv.slice(2))));
