import { readFile } from 'node:fs/promises';
import type { UpstreamPool } from '../catalog/catalog-records.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** What a pool's members are asked with. Never logged. */
export interface Credentials {
  /** The bearer token; null for none. */
  readonly token: string | null;
  /** Certificates (PEM) that are trusted instead of the system's; null for those. */
  readonly certificates: string | null;
}

/** What a header can carry. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/** Reads the files of a pool as they are now. Rejects with `UpstreamFailed`, which names the file. */
export async function readCredentials({
  token_file,
  ca_file,
}: Pick<UpstreamPool, 'token_file' | 'ca_file'>): Promise<Credentials> {
  const token = token_file === null ? null : (await readText(token_file)).trim();
  if (token !== null && !TOKEN.test(token)) {
    throw new UpstreamFailed('refused', `${token_file} must hold a token: one line of visible ASCII.`);
  }
  return { token, certificates: ca_file === null ? null : await readText(ca_file) };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UpstreamFailed('refused', `${path} cannot be read (${systemErrorCode(error) ?? 'no code'}).`);
  }
}
