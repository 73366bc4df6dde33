import { existsSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { newestBackup } from '../../db/sqlite/sqlite-backups.ts';
import { EMBEDDED_WEIGHTS, type MachineMemory, machineMemory, weightsBytes } from '../../native/engine.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { connectionsThatFit, DESCRIPTORS_MIN, descriptorLimit } from '../http/file-descriptors.ts';
import { ListenRefused, listen, PortTaken } from '../http/listen.ts';
import { HOUR_MS } from '../time/clock.ts';
import { DATABASE_FILE, existingParent, isServerRunning } from './data-directory.ts';
import type { Finding } from './findings.ts';
import { formatTime } from './output.ts';

/** The free bytes below which a commit may soon fail. */
const FREE_MIN_BYTES = 100 * BYTES_PER_MEGABYTE;
/** The free bytes below which the disk needs attention. */
const FREE_GOOD_BYTES = 1_000 * BYTES_PER_MEGABYTE;
/**
 * The memory of the service beside its weights' file and kept prefixes, measured under load with the embedded
 * model.
 */
const MEMORY_WITHOUT_WEIGHTS_BYTES = 700 * BYTES_PER_MEGABYTE;
/** A backup is copied and compressed beside the database, unless it goes elsewhere. */
const DATABASES_THAT_FIT = 2;

/** Returns the finding about free space on the disk of the data directory, which may not exist yet. */
export function diskFinding(data: string): Finding {
  const { bavail, bsize } = statfsSync(existingParent(resolve(data)));
  const free_bytes = bavail * bsize;
  const detail = `${Math.floor(free_bytes / BYTES_PER_MEGABYTE)} MB free for ${data}`;
  if (free_bytes < FREE_MIN_BYTES)
    return { subject: 'disk', state: 'broken', detail: `${detail}: make room on its disk` };
  const database_bytes = sizeOf(join(data, DATABASE_FILE));
  return free_bytes < Math.max(FREE_GOOD_BYTES, DATABASES_THAT_FIT * database_bytes)
    ? { subject: 'disk', state: 'warning', detail: `${detail}: make room on its disk soon` }
    : { subject: 'disk', state: 'ok', detail };
}

/** Returns the size of a file; 0 where it is missing. An unreadable file has a finding of its own. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** Returns the finding about the memory limit and the weights, which may be missing. */
export async function memoryFinding(
  model_path: string | undefined,
  { bytes, limiter }: MachineMemory = machineMemory(),
): Promise<Finding> {
  const subject = 'memory';
  const weights_bytes = await weightsBytes(model_path ?? EMBEDDED_WEIGHTS).catch(() => 0);
  const needed_bytes = MEMORY_WITHOUT_WEIGHTS_BYTES + weights_bytes;
  const detail = `${Math.floor(bytes / BYTES_PER_MEGABYTE)} MB${limiter === 'cgroup' ? ', the limit of its control group (container or unit)' : ''}`;
  return bytes < needed_bytes
    ? {
        subject,
        state: 'warning',
        detail: `${detail}: give it ${Math.ceil(needed_bytes / BYTES_PER_MEGABYTE)} MB, or it may be killed under load`,
      }
    : { subject, state: 'ok', detail };
}

/** Returns the finding about the limit of open files. */
export function descriptorsFinding(): Finding {
  const subject = 'file descriptors';
  const limit = descriptorLimit();
  if (limit < DESCRIPTORS_MIN) return { subject, state: 'broken', detail: descriptorsAdvice(limit) };
  return { subject, state: 'ok', detail: `${limit}, for ${connectionsThatFit()} connections` };
}

/** Returns the advice about a limit of open files that is too low. */
export function descriptorsAdvice(limit: number): string {
  return `This process may open ${limit} files, and needs ${DESCRIPTORS_MIN}: raise the limit ("ulimit -n", or LimitNOFILE of systemd).`;
}

/**
 * Returns the finding about the address: a server can listen there, or one on the data directory already
 * does.
 */
export async function portFinding({
  data,
  host,
  port,
}: {
  readonly data: string;
  readonly host: string;
  readonly port: number;
}): Promise<Finding> {
  const subject = 'port';
  const server = createServer();
  try {
    await listen(server, { host, port });
    await new Promise((resolve) => server.close(resolve));
    const detail = port === 0 ? `any free one of ${host}` : `${port} of ${host} is free`;
    return { subject, state: 'ok', detail };
  } catch (error) {
    if (!(error instanceof ListenRefused)) throw error;
    return error instanceof PortTaken && hasServer(data)
      ? { subject, state: 'ok', detail: `${port} of ${host} is taken, and a server runs on ${data}` }
      : { subject, state: 'broken', detail: error.message };
  }
}

/** Returns true if a server runs; an unusable directory has a finding of its own. */
function hasServer(data: string): boolean {
  try {
    return isServerRunning(data);
  } catch {
    return false;
  }
}

/** Returns the finding about the age of the newest scheduled backup; `directory` may not exist. */
export function backupsFinding(directory: string, now_ms: number): Finding {
  let newest_ms: number | null;
  try {
    newest_ms = existsSync(directory) ? (newestBackup(directory, now_ms)?.at_ms ?? null) : null;
  } catch (error) {
    const detail = `${directory} cannot be read (${systemErrorCode(error) ?? error}): give this user the right to it, or name another with --backup-directory`;
    return { subject: 'backups', state: 'warning', detail };
  }
  if (newest_ms === null) {
    const detail = `none in ${directory}: back up with "tds backup FILE", or "tds serve --backup-every 6h"`;
    return { subject: 'backups', state: 'warning', detail };
  }
  const hours = Math.floor((now_ms - newest_ms) / HOUR_MS);
  const detail = `the newest in ${directory} is of ${formatTime(newest_ms)}, ${hours} hours old`;
  return { subject: 'backups', state: 'ok', detail };
}
