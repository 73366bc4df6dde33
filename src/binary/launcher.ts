import { dlopen } from 'bun:ffi';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { holdSignals } from '../program/held-signals.ts';
import { ARCHIVE_NAME, type EmbeddedManifest, MANIFEST_NAME } from './embedded-files.ts';
import { UnpackFailed, unpackedRoot } from './unpack.ts';

/** Linux's name for the executable of the process that asks, also where that file was removed. */
const RUNNING_PROGRAM = '/proc/self/exe';

/**
 * Returns the folder for unpacked programs: `TDS_CACHE`, systemd's (`CacheDirectory=`), else the user's own
 * cache. A user without a home has a folder in the system's temporary one.
 */
function cacheDirectory(environment: NodeJS.ProcessEnv): string {
  const { TDS_CACHE = '', CACHE_DIRECTORY = '', XDG_CACHE_HOME = '', HOME = '' } = environment;
  if (TDS_CACHE !== '') return resolve(TDS_CACHE);
  const [service_folder = ''] = CACHE_DIRECTORY.split(':');
  if (service_folder !== '') return service_folder;
  if (XDG_CACHE_HOME.startsWith('/')) return join(XDG_CACHE_HOME, 'tds');
  if (HOME !== '' && HOME !== '/') return join(HOME, '.cache', 'tds');
  return join(tmpdir(), `tds-${process.getuid?.() ?? 'cache'}`);
}

async function readEmbedded(): Promise<Uint8Array> {
  return Bun.zstdDecompressSync(await Bun.file(join(import.meta.dir, ARCHIVE_NAME)).bytes());
}

/** Reads the archive beside the executable. Throws `UnpackFailed` where it is missing or truncated. */
async function readBeside(name: string): Promise<Uint8Array> {
  const path = join(dirname(process.execPath), name);
  try {
    return Bun.zstdDecompressSync(await Bun.file(path).bytes());
  } catch (cause) {
    throw new UnpackFailed(`${path} is missing or damaged: put it there from where the executable is from.`, {
      cause,
    });
  }
}

/**
 * Sets variables in the C library's environment, which Bun reads instead of `process.env`. Bun reads each
 * only once, so this must come first.
 */
function setEnvironment(variables: Readonly<Record<string, string>>): void {
  try {
    const { symbols, close } = dlopen('libc.so.6', {
      setenv: { args: ['cstring', 'cstring', 'i32'], returns: 'i32' },
    });
    for (const [name, value] of Object.entries(variables)) {
      symbols.setenv(Buffer.from(`${name}\0`), Buffer.from(`${value}\0`), 1);
    }
    close();
  } catch {
    // Where the system forbids memory that is written and executed, Bun cannot call C. A service manager sets
    // HOME.
  }
}

/**
 * Returns the script that this process was forked for; undefined for any other start. node-llama-cpp tries a
 * library in a forked process, and a fork of an executable starts that executable again.
 */
function forkedScript(root: string): string | undefined {
  const script = process.argv[2];
  return process.env.TEST_BINDING_CP === 'true' && script?.startsWith(join(root, 'node_modules', '/'))
    ? script
    : undefined;
}

async function launch(): Promise<void> {
  const { sha256, files, libraries_archive }: EmbeddedManifest = await Bun.file(
    join(import.meta.dir, MANIFEST_NAME),
  ).json();
  const archives =
    libraries_archive === null ? [readEmbedded] : [readEmbedded, () => readBeside(libraries_archive)];
  const cache = cacheDirectory(process.env);
  const root = await unpackedRoot({ sha256, files, archives }, cache, Date.now());
  setEnvironment({
    // node-llama-cpp reads the home folder when it is loaded, which throws where the system has none.
    ...(process.env.HOME ? {} : { HOME: cache }),
    // Bun would store compiled JavaScript in the home folder, and run whatever it finds there.
    BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
  });
  // Forks and trials of weights start the version that runs, whatever an upgrade has put in its place.
  if (existsSync(RUNNING_PROGRAM)) process.execPath = RUNNING_PROGRAM;
  await import(forkedScript(root) ?? join(root, 'src', 'main.js'));
}

// A reload may be asked for while this unpacks; the service is there to be asked only later.
if (process.argv[2] === 'serve') holdSignals();

try {
  await launch();
} catch (error) {
  if (!(error instanceof UnpackFailed)) throw error;
  process.stderr.write(`tds: ${error.message}\n`);
  process.exitCode = 1;
}
