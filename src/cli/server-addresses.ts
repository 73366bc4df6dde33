import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER_ONLY_FILE } from '../file-permissions.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { CommandFailed } from './command-failed.ts';

/** In the data directory while a server runs on it, so that other commands find it at any port. */
const FILES = { service: 'service-url.txt', metrics: 'metrics-url.txt' } as const;

/** What a server listens for at an address of its own. */
export type Listener = keyof typeof FILES;

/** Leaves the address of a listener in the data directory. */
export function leaveAddress(data: string, listener: Listener, url: string): void {
  writeFileSync(join(data, FILES[listener]), `${url}\n`, { mode: OWNER_ONLY_FILE });
}

/** The address that a server left, which may be gone; undefined for none. Throws `CommandFailed`. */
export function findAddress(data: string, listener: Listener): string | undefined {
  const path = join(data, FILES[listener]);
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new CommandFailed(
      `${path} cannot be read (${code ?? error}): run this as the service's user, or name the address with --url.`,
      { cause: error },
    );
  }
}

export function removeAddress(data: string, listener: Listener): void {
  rmSync(join(data, FILES[listener]), { force: true });
}
