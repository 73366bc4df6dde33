import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** In the data directory while a server with metrics runs on it, so that `tds top` finds them at any port. */
const FILE = 'metrics-url.txt';
const FILE_MODE = 0o600;

/** Leaves the address of the metrics in the data directory. */
export function leaveMetricsUrl(data: string, url: string): void {
  writeFileSync(join(data, FILE), `${url}\n`, { mode: FILE_MODE });
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
