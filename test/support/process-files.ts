import { readlinkSync } from 'node:fs';

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
