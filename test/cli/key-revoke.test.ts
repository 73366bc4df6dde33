import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { temporaryDirectory } from '../accounts/support.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { initializeData, tds, tdsJson, textField } from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const root = temporaryDirectory();
const data = join(root.path, 'data');
let server: ChildServer;
beforeAll(async () => {
  await initializeData(data);
  server = await startChildServer(data, root.path);
});
afterAll(async () => {
  await server.stop();
  root.remove();
});

test('a key that is rotated without an overlap is refused by the running service with the next request, and the new one answered', async () => {
  const { key, key_id } = await createdKey('Rotated');
  expect(await statusOf(key)).toBe(200);
  const rotated = await tdsJson(['key', 'rotate', key_id, '--overlap', 'none', '--data', data]);
  expect(await statusOf(key)).toBe(401);
  expect(await statusOf(textField(rotated, 'key'))).toBe(200);
});

test('a key that is revoked is refused by the running service with the next request, and the command says what others need', async () => {
  const { key, key_id } = await createdKey('Revoked');
  // Read once, so that the service knows the key for a minute.
  expect(await statusOf(key)).toBe(200);
  const { code, stdout, stderr } = await tds(['key', 'revoke', key_id, '--data', data]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(
    `The service on ${data} refuses it from now on; other nodes do within 60 seconds.\n`,
  );
  expect(await statusOf(key)).toBe(401);
  await server.stop();
  const again = await tds(['key', 'revoke', key_id, '--data', data]);
  expect(again.stdout).toContain(
    `No service was reached on ${data}; those elsewhere refuse it within 60 seconds.\n`,
  );
});

async function statusOf(key: string): Promise<number> {
  const response = await fetch(`${server.address}/v1/models`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.text();
  return response.status;
}

async function createdKey(name: string): Promise<{ readonly key: string; readonly key_id: string }> {
  const created = await tdsJson(['key', 'create', 'Default', name, '--data', data]);
  return { key: textField(created, 'key'), key_id: textField(created, 'id') };
}
