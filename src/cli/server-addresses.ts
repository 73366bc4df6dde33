import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER_ONLY_FILE } from '../file-permissions.ts';

/** In the data directory while a server runs on it, so that other commands find it at any port. */
const FILES = { service: 'service-url.txt', metrics: 'metrics-url.txt' } as const;

/** What a server listens for at an address of its own. */
export type Listener = keyof typeof FILES;

/** Leaves the address of a listener in the data directory. */
export function leaveAddress(data: string, listener: Listener, url: string): void {
  writeFileSync(join(data, FILES[listener]), `${url}\n`, { mode: OWNER_ONLY_FILE });
}

/** The address that a server left, which may be gone; undefined for none. */
export function findAddress(data: string, listener: Listener): string | undefined {
  try {
    return readFileSync(join(data, FILES[listener]), 'utf8').trim();
  } catch {
    // Nothing is lost: without an address the command says how to give one.
    return undefined;
  }
}

export function removeAddress(data: string, listener: Listener): void {
  rmSync(join(data, FILES[listener]), { force: true });
}
