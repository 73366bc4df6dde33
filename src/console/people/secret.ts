import { randomBytes } from 'node:crypto';
import { lchownSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../../errors/system-error-code.ts';

/** The file of the console's secret in the data directory. */
export const SECRET_FILE = 'console-secret';

const SECRET_BYTES = 32;
const PRIVATE_FILE_MODE = 0o600;
const SECRET = /^[0-9a-f]{64}$/;

/** The file of the secret has invalid content. */
export class SecretRefused extends Error {
  override readonly name = 'SecretRefused';
}

/**
 * Returns the secret that signs session cookies, derives CSRF tokens and encrypts second factors: 32 random bytes, in
 * hexadecimal. The first call in a directory stores it, in a file that only its owner can read. It is that of another
 * database if given, or a new one. A killed process leaves the whole file or none. Removing the file ends all sessions
 * and makes second factors unusable. Throws `SecretRefused`, and as the file system does.
 */
export function consoleSecret(
  directory: string,
  made: string = randomBytes(SECRET_BYTES).toString('hex'),
): string {
  const path = join(directory, SECRET_FILE);
  const secret = read(path) ?? make(directory, path, made);
  if (!SECRET.test(secret)) throw new SecretRefused(`${path} does not hold a secret of this program`);
  return secret;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function make(directory: string, path: string, secret: string): string {
  const temporary = `${path}.${process.pid}`;
  try {
    rmSync(temporary, { force: true });
    writeFileSync(temporary, `${secret}\n`, { mode: PRIVATE_FILE_MODE, flag: 'wx', flush: true });
    // The server must be able to read a file that an administrator's command creates.
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(directory);
      lchownSync(temporary, uid, gid);
    }
    linkSync(temporary, path);
    return secret;
  } catch (error) {
    // Another process was faster, so its secret is used.
    if (systemErrorCode(error) === 'EEXIST') return read(path) ?? secret;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}
