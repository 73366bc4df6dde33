import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PackageManifest, UnpackFailed, unpackedRoot } from './unpack.ts';

/** Put beside this module into the executable by `build.ts`. */
const ARCHIVE = join(import.meta.dir, 'program.tar.zst');
const MANIFEST = join(import.meta.dir, 'program.json');

/**
 * Where the program is unpacked: `TDS_CACHE`, the folder that systemd gives (`CacheDirectory=`), else the user's own
 * cache. A user without a home has a folder beneath the system's temporary one.
 */
function cacheDirectory(environment: NodeJS.ProcessEnv): string {
  const { TDS_CACHE, CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = environment;
  if (TDS_CACHE !== undefined && TDS_CACHE !== '') return TDS_CACHE;
  if (CACHE_DIRECTORY !== undefined && CACHE_DIRECTORY !== '') return CACHE_DIRECTORY;
  if (XDG_CACHE_HOME !== undefined && XDG_CACHE_HOME !== '') return join(XDG_CACHE_HOME, 'tds');
  if (HOME !== undefined && HOME !== '' && HOME !== '/') return join(homedir(), '.cache', 'tds');
  return join(tmpdir(), `tds-${process.getuid?.() ?? 'cache'}`);
}

async function launch(): Promise<void> {
  const { sha256, files }: PackageManifest = await Bun.file(MANIFEST).json();
  const read = async () => Bun.zstdDecompressSync(await Bun.file(ARCHIVE).bytes());
  const root = await unpackedRoot({ sha256, files, read }, cacheDirectory(process.env), Date.now());
  await import(join(root, 'src', 'main.js'));
}

try {
  await launch();
} catch (error) {
  if (!(error instanceof UnpackFailed)) throw error;
  process.stderr.write(`tds: ${error.message}\n`);
  process.exitCode = 1;
}
