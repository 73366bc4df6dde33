import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** One file of the program, as it must be after unpacking. */
export interface PackedFile {
  /** From the root, with slashes. */
  readonly path: string;
  readonly size_bytes: number;
  /** In hex. */
  readonly sha256: string;
}

/** What an executable carries. */
export interface PackageManifest {
  /** Of the archive, in hex: names the folder that it is unpacked to. */
  readonly sha256: string;
  readonly files: readonly PackedFile[];
}

/** The same with the archive itself, a tar. */
export interface Package extends PackageManifest {
  read(): Promise<Uint8Array>;
}

/** The program cannot be unpacked; the message is one sentence with what to do. */
export class UnpackFailed extends Error {
  override readonly name = 'UnpackFailed';
}

/** Leftovers of starts that were cut are removed once nobody can still be writing them. */
const LEFTOVER_MS = 3_600_000;
const UNPACKING = 'unpacking-';
const OTHERS_WRITE = 0o022;
const FOLDER_NAME_LENGTH = 16;

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Makes the folder for this user only. Throws `UnpackFailed` where another user could change what lies in it. */
async function prepareCache(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = await stat(directory);
    const user_id = process.getuid?.();
    if (user_id !== undefined && uid !== user_id) {
      throw new UnpackFailed(
        `${directory} belongs to another user: name a folder of your own with TDS_CACHE.`,
      );
    }
    if ((mode & OTHERS_WRITE) !== 0) {
      throw new UnpackFailed(
        `${directory} can be written by other users: run "chmod 700 ${directory}", or name another folder with TDS_CACHE.`,
      );
    }
  } catch (error) {
    if (error instanceof UnpackFailed) throw error;
    throw new UnpackFailed(
      `${directory} cannot be used (${codeOf(error)}): name a folder that can be written with TDS_CACHE.`,
      { cause: error },
    );
  }
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of Bun.file(path).stream()) hash.update(piece);
  return hash.digest('hex');
}

/** Whether every file is there in its size; with `contents` also with its bytes. */
async function isComplete(root: string, files: readonly PackedFile[], contents: boolean): Promise<boolean> {
  for (const { path, size_bytes, sha256 } of files) {
    const found = await stat(join(root, path)).catch(() => null);
    if (found === null || !found.isFile() || found.size !== size_bytes) return false;
    if (contents && (await sha256Of(join(root, path))) !== sha256) return false;
  }
  return true;
}

async function removeLeftovers(directory: string, now_ms: number): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(UNPACKING)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => null);
    if (found !== null && now_ms - found.mtimeMs > LEFTOVER_MS)
      await rm(path, { recursive: true, force: true });
  }
}

async function syncFile(path: string): Promise<void> {
  await using handle = await open(path, constants.O_RDONLY);
  await handle.sync();
}

async function requireRoom(directory: string, files: readonly PackedFile[]): Promise<void> {
  const needed_bytes = files.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= needed_bytes) return;
  throw noRoom(directory, needed_bytes);
}

function noRoom(directory: string, needed_bytes: number, cause?: unknown): UnpackFailed {
  const megabytes = Math.ceil(needed_bytes / 1e6);
  return new UnpackFailed(
    `${directory} has no room for the ${megabytes} MB of the program: free some, or name another folder with TDS_CACHE.`,
    { cause },
  );
}

/** Another start may put the same folder there at any moment: whoever is first stays, a broken folder goes. */
async function putInPlace(
  root: string,
  target: string,
  before: string,
  files: readonly PackedFile[],
): Promise<void> {
  if (await isComplete(target, files, false)) return;
  await rename(target, before).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  await rename(root, target).catch(async (error: unknown) => {
    if (!(await isComplete(target, files, false))) throw error;
  });
}

/** Writes all files into a folder of its own beside the target, verified, and renames it into place. */
async function unpackInto(target: string, given: Package): Promise<void> {
  const cache = dirname(target);
  await requireRoom(cache, given.files);
  const work = await mkdtemp(join(cache, UNPACKING));
  try {
    const root = join(work, 'root');
    await mkdir(root);
    await new Bun.Archive(new Blob([await given.read()])).extract(root);
    if (!(await isComplete(root, given.files, true))) {
      throw new UnpackFailed('This executable is damaged: get it again.');
    }
    for (const { path } of given.files) await syncFile(join(root, path));
    await chmod(root, 0o700);
    await putInPlace(root, target, join(work, 'before'), given.files);
    await syncFile(cache);
  } catch (error) {
    if (codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT') {
      throw noRoom(
        cache,
        given.files.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
        error,
      );
    }
    throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * The folder with the program's files, unpacked first where it is missing or has lost something. Two first starts at
 * once do the same work twice, and one of the two results stays. Throws `UnpackFailed` with what to do.
 */
export async function unpackedRoot(given: Package, cache_directory: string, now_ms: number): Promise<string> {
  const target = join(cache_directory, given.sha256.slice(0, FOLDER_NAME_LENGTH));
  await prepareCache(cache_directory);
  if (await isComplete(target, given.files, false)) return target;
  await removeLeftovers(cache_directory, now_ms);
  await unpackInto(target, given);
  return target;
}
