import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OWNER_ONLY_FILE } from '../files/file-permissions.ts';
import { CommandFailed } from './command-failed.ts';

/** Files in the data directory of a running server, by which other commands find it at any port. */
const FILES = { service: 'service-url.txt', metrics: 'metrics-url.txt' } as const;

/** The listeners of a server, each with an address of its own. */
export type Listener = keyof typeof FILES;

/** Writes the address of a listener to the data directory. */
export function leaveAddress(data: string, listener: Listener, url: string): void {
  writeFileSync(join(data, FILES[listener]), `${url}\n`, { mode: OWNER_ONLY_FILE });
}

/**
 * Returns the address that a server wrote, which may have ended; undefined for none. Throws `CommandFailed`.
 */
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
