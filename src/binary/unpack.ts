import { createHash } from 'node:crypto';
import { type Stats, statSync } from 'node:fs';
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../errors/system-error-code.ts';
import {
  OTHERS_WRITE,
  OWNER_ONLY_DIRECTORY,
  OWNER_ONLY_FILE,
  ROOT_USER_ID,
} from '../files/file-permissions.ts';
import { DAY_MS, HOUR_MS } from '../time/clock.ts';
import { claimUnused, lastUse_ms, markInUse, markWritten, USE_FILE } from './in-use.ts';
import { isExecutable } from './mounts.ts';

/** One file of the program, with its expected size and checksum. */
export interface PackedFile {
  /** The path from the root, with slashes. */
  readonly path: string;
  readonly size_bytes: number;
  /** In hex. */
  readonly sha256: string;
}

/** The manifest of an executable's files. */
export interface PackageManifest {
  /** The checksum of the list of files, in hex, which names their folder. */
  readonly sha256: string;
  readonly files: readonly PackedFile[];
}

/** The manifest with the files' bytes. */
export interface Package extends PackageManifest {
  /** Functions that each read one tar; together the tars have every file. */
  readonly archives: readonly (() => Promise<Uint8Array>)[];
}

/** The program cannot be unpacked; the message is one sentence with advice. */
export class UnpackFailed extends Error {
  override readonly name = 'UnpackFailed';
}

const UNPACKING = 'unpacking-';
/** The age at which an unfinished folder without a lock is removed: its writer must have ended. */
const LEFTOVER_MS = HOUR_MS;
const FOLDER_NAME_LENGTH = 16;
const FOLDER_NAME = /^[0-9a-f]{16}$/;
/** The time for which another version's folder stays after its last start, for a return to that version. */
const UNUSED_MS = DAY_MS;
/** Another process may remove a folder just before its use, but hardly twice. */
const ATTEMPTS = 5;
/** The modification time of every unpacked file; any other shows a later write. */
const UNPACKED_MTIME_S = 1_000_000_000;
/** The files that are written at once, because each waits for the disk. */
const WRITERS = 16;
const NO_ROOM_CODES: readonly string[] = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/**
 * Throws `UnpackFailed` for a folder that another user owns or can write, because its program runs as this
 * user.
 */
function requirePrivate(directory: string, { uid, mode }: Stats): void {
  const user_id = process.getuid?.();
  if (user_id !== undefined && uid !== user_id) throw ofAnother(directory);
  if ((mode & OTHERS_WRITE) !== 0) {
    throw new UnpackFailed(
      `${directory} can be written by other users: remove it, run "chmod 700" on it, or name another folder with TDS_CACHE.`,
    );
  }
}

function ofAnother(directory: string): UnpackFailed {
  return new UnpackFailed(`${directory} belongs to another user: name a folder of this user with TDS_CACHE.`);
}

async function prepareCache(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: OWNER_ONLY_DIRECTORY });
  const user_id = process.getuid?.();
  // Its owner can turn a link to another folder after these checks. Systemd's cache may be a link of root's.
  const { uid } = await lstat(directory);
  if (user_id !== undefined && uid !== user_id && uid !== ROOT_USER_ID) throw ofAnother(directory);
  requirePrivate(directory, await stat(directory));
  // Otherwise the libraries would be reported as damaged one by one. Some systems do not have this file.
  const mountinfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  if (isExecutable(await realpath(directory), mountinfo)) return;
  throw new UnpackFailed(
    `${directory} is on a mount with noexec, from which no library can be loaded: mount it without noexec, or name another folder with TDS_CACHE.`,
  );
}

/** Returns true if the file has its size, and was not written since it was verified and unpacked. */
function isIntact(root: string, { path, size_bytes }: PackedFile): boolean {
  try {
    const found = statSync(join(root, path));
    return found.isFile() && found.size === size_bytes && found.mtimeMs === UNPACKED_MTIME_S * 1_000;
  } catch {
    // Nothing is lost: an unreadable file is unpacked again, or the repair reports the reason.
    return false;
  }
}

/**
 * Returns true if `isIntact` holds for all files. Synchronous, because that takes a tenth of the time, and a
 * start has nothing else to do.
 */
function isComplete(root: string, files: readonly PackedFile[]): boolean {
  const found = statSync(root, { throwIfNoEntry: false });
  if (found === undefined) return false;
  requirePrivate(root, found);
  return files.every((file) => isIntact(root, file));
}

async function removeLeftovers(directory: string, now_ms: number): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(UNPACKING)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => null);
    if (found === null) continue;
    const release = claimAbandoned(path);
    try {
      if (release !== null || now_ms - found.mtimeMs > LEFTOVER_MS)
        await rm(path, { recursive: true, force: true });
    } finally {
      release?.();
    }
  }
}

/** Claims a folder whose writer has ended; null for one that is being written, or has no mark. */
function claimAbandoned(folder: string): (() => void) | null {
  try {
    return claimUnused(folder);
  } catch {
    // It has no mark, so its age decides.
    return null;
  }
}

/**
 * Removes the folders of other versions that no process uses and none was started from for a day. Used
 * folders are locked, so that versions run side by side; unmarked ones are left alone. Failures are left to
 * the next start.
 */
async function removeUnused(cache: string, used: string, now_ms: number): Promise<void> {
  const names = await readdir(cache).catch(() => []);
  for (const name of names.filter((one) => FOLDER_NAME.test(one) && one !== used)) {
    try {
      await removeIfUnused(cache, join(cache, name), now_ms);
    } catch {
      // Remains of an earlier version never make a start fail.
    }
  }
}

async function removeIfUnused(cache: string, folder: string, now_ms: number): Promise<void> {
  const last_ms = lastUse_ms(folder);
  if (last_ms === undefined || now_ms - last_ms <= UNUSED_MS) return;
  const release = claimUnused(folder);
  if (release === null) return;
  const work = await mkdtemp(join(cache, UNPACKING));
  try {
    // The folder moves in one step, so that a starting process finds all of it or nothing.
    await rename(folder, join(work, 'root'));
  } finally {
    release();
    await rm(work, { recursive: true, force: true });
  }
}

async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/** Returns the checksum in hex. */
export function sha256Of(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}

function totalBytes(files: readonly PackedFile[]): number {
  return files.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}

function noRoom(directory: string, files: readonly PackedFile[], cause?: unknown): UnpackFailed {
  const megabytes = Math.ceil(totalBytes(files) / 1e6);
  return new UnpackFailed(
    `${directory} has no room for the ${megabytes} MB of the program: free some, or name another folder with TDS_CACHE.`,
    { cause },
  );
}

async function requireRoom(directory: string, files: readonly PackedFile[]): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < totalBytes(files)) throw noRoom(directory, files);
}

/** Writes one verified file; resolves when it is on the disk. */
async function writeVerified(root: string, file: PackedFile, bytes: Uint8Array): Promise<void> {
  if (sha256Of(bytes) !== file.sha256)
    throw new UnpackFailed(`${file.path} is damaged: get the executable again.`);
  const path = join(root, file.path);
  await mkdir(dirname(path), { recursive: true, mode: OWNER_ONLY_DIRECTORY });
  await using handle = await open(path, 'wx', OWNER_ONLY_FILE);
  await handle.writeFile(bytes);
  await handle.utimes(UNPACKED_MTIME_S, UNPACKED_MTIME_S);
  await handle.sync();
}

/** Writes all files into an empty folder. Throws `UnpackFailed` for a missing or damaged file. */
async function writeFiles(root: string, { files, archives }: Package): Promise<void> {
  const missing = new Map(files.map((file) => [file.path, file]));
  for (const read of archives) {
    const contents = [...(await new Bun.Archive(await read()).files())];
    const write = async () => {
      for (let next = contents.pop(); next !== undefined; next = contents.pop()) {
        const [path, content] = next;
        const file = missing.get(path);
        if (file === undefined) continue;
        missing.delete(path);
        await writeVerified(root, file, await content.bytes());
      }
    };
    const results = await Promise.allSettled(Array.from({ length: WRITERS }, write));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
  const [path] = missing.keys();
  if (path !== undefined) throw new UnpackFailed(`${path} is missing: get the executable again.`);
}

/** Moves the folder into place. If there is one already, replaces only its missing or changed files. */
async function putInPlace(root: string, target: string, files: readonly PackedFile[]): Promise<void> {
  const is_placed = await rename(root, target).then(
    () => true,
    (error: unknown) => {
      if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemErrorCode(error) ?? '')) return false;
      throw error;
    },
  );
  // A process that runs from there is not disturbed: intact files stay, and others are replaced in one step
  // each.
  if (!is_placed) for (const file of files) if (!isIntact(target, file)) await replace(root, target, file);
}

async function replace(root: string, target: string, { path }: PackedFile): Promise<void> {
  try {
    await mkdir(dirname(join(target, path)), { recursive: true, mode: OWNER_ONLY_DIRECTORY });
    await rename(join(root, path), join(target, path));
  } catch (cause) {
    throw new UnpackFailed(
      `${target} cannot be repaired (${systemErrorCode(cause) ?? ''}): remove it and start again.`,
      {
        cause,
      },
    );
  }
}

/** Writes all files, verified, into a folder of its own beside the target, and moves it into place. */
async function unpackInto(target: string, given: Package): Promise<void> {
  const cache = dirname(target);
  await requireRoom(cache, given.files);
  const work = await mkdtemp(join(cache, UNPACKING));
  const unmark = markWritten(work);
  try {
    const root = join(work, 'root');
    await mkdir(root, { mode: OWNER_ONLY_DIRECTORY });
    await writeFiles(root, given);
    await writeFile(join(root, USE_FILE), '', { mode: OWNER_ONLY_FILE });
    await syncFolder(root);
    await putInPlace(root, target, given.files);
    await syncFolder(cache);
  } finally {
    await rm(work, { recursive: true, force: true });
    unmark();
  }
}

/**
 * Returns the folder with the program's files in the cache folder. A missing folder is unpacked, and a
 * damaged one repaired. It is marked as used until this process ends, and unused folders of other versions
 * are removed. Both folders must be this user's and writable for nobody else. Concurrent starts do the same
 * work, and the first result stays. Throws `UnpackFailed` with advice.
 */
export async function unpackedRoot(given: Package, cache_directory: string, now_ms: number): Promise<string> {
  const target = join(cache_directory, given.sha256.slice(0, FOLDER_NAME_LENGTH));
  try {
    await prepareCache(cache_directory);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (!isComplete(target, given.files)) {
        await removeLeftovers(cache_directory, now_ms);
        await unpackInto(target, given);
      }
      if (!markInUse(target, now_ms)) continue;
      await removeUnused(cache_directory, basename(target), now_ms);
      return target;
    }
    throw new UnpackFailed(`${target} is removed again and again: name another folder with TDS_CACHE.`);
  } catch (error) {
    if (error instanceof UnpackFailed) throw error;
    if (NO_ROOM_CODES.includes(systemErrorCode(error) ?? ''))
      throw noRoom(cache_directory, given.files, error);
    throw new UnpackFailed(
      `${cache_directory} cannot be used (${systemErrorCode(error) || String(error)}): name a folder that can be written with TDS_CACHE.`,
      { cause: error },
    );
  }
}
