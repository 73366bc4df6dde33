import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Returns true if this process may read another's memory and descriptors in `/proc`. Only root may read those of `tds`.
 * Prints a note if it may not.
 */
export function canInspect(pid: number): boolean {
  try {
    readlinkSync(`/proc/${pid}/exe`);
    return true;
  } catch {
    console.warn(`The files of process ${pid} cannot be read: what they show is not tested.`);
    return false;
  }
}

/** Files that the process has open and may have deleted already: what a listing would not show. */
export function openFiles(pid: number): string[] {
  if (process.platform !== 'linux' || !canInspect(pid)) return [];
  const descriptors = `/proc/${pid}/fd`;
  return readdirSync(descriptors)
    .map((name) => join(descriptors, name))
    .filter((path) => {
      try {
        return readlinkSync(path).startsWith('/') && !readlinkSync(path).startsWith('/dev/');
      } catch {
        return false;
      }
    });
}
