import { expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { consoleSecret, SECRET_FILE, SecretRefused } from '../../src/console/people/secret.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('the secret is made once, as 32 random bytes in a file of its owner alone', () => {
  const [directory, other] = [temporaryDirectory(), temporaryDirectory()];
  const secret = consoleSecret(directory.path);
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(consoleSecret(directory.path)).toBe(secret);
  expect(consoleSecret(other.path)).not.toBe(secret);
  expect(statSync(join(directory.path, SECRET_FILE)).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory.path)).toEqual([SECRET_FILE]);
  for (const made of [directory, other]) made.remove();
});

test('processes that make it at the same time get the same one', async () => {
  const directory = temporaryDirectory();
  const script = join(import.meta.dir, 'secret-child.ts');
  const children = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, script, directory.path], { stdout: 'pipe' }),
  );
  const secrets = await Promise.all(children.map(({ stdout }) => new Response(stdout).text()));
  expect(new Set(secrets)).toEqual(new Set([readFileSync(join(directory.path, SECRET_FILE), 'utf8')]));
  directory.remove();
});

test('a file that holds something else is refused, and kept', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, SECRET_FILE);
  writeFileSync(path, 'short\n');
  expect(() => consoleSecret(directory.path)).toThrow(SecretRefused);
  expect(readFileSync(path, 'utf8')).toBe('short\n');
  directory.remove();
});
