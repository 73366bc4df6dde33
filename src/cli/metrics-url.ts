import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER_ONLY_FILE } from '../file-permissions.ts';

/** In the data directory while a server with metrics runs on it, so that `tds top` finds them at any port. */
const FILE = 'metrics-url.txt';

/** Leaves the address of the metrics in the data directory. */
export function leaveMetricsUrl(data: string, url: string): void {
  writeFileSync(join(data, FILE), `${url}\n`, { mode: OWNER_ONLY_FILE });
}

/** The address that a server left, which may be gone; null for none. */
export function findMetricsUrl(data: string): string | null {
  try {
    return readFileSync(join(data, FILE), 'utf8').trim();
  } catch {
    // Nothing is lost: without an address the command says how to give one.
    return null;
  }
}

export function removeMetricsUrl(data: string): void {
  rmSync(join(data, FILE), { force: true });
}
