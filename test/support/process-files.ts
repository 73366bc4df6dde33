import { readlinkSync } from 'node:fs';

/**
 * Whether this process may read the files in `/proc` that show another's memory or descriptors. Those of `tds` are
 * closed to its own user too, so that only root reads them. Says so where it may not.
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
