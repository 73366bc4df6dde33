import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { temporaryDirectory } from '../accounts/support.ts';
import { startChildServer } from '../support/child-server.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { tds, tdsJson, textField } from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const root = temporaryDirectory();
const data = join(root.path, 'data');
beforeAll(() => tdsJson(['init', '--data', data]));
afterAll(() => root.remove());

test('a key that is revoked is refused by the running service with the next request, and the command says what others need', async () => {
  const { key, key_id } = await createdKey();
  const server = await startChildServer(data, root.path);
  try {
    // Read once, so that the service knows the key for a minute.
    expect(await statusOf(server, key)).toBe(200);
    const { code, stdout, stderr } = await tds(['key', 'revoke', key_id, '--data', data]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(
      `The service on ${data} refuses it from now on; other nodes do within 60 seconds.\n`,
    );
    expect(await statusOf(server, key)).toBe(401);
  } finally {
    await server.stop();
  }
  const { stdout } = await tds(['key', 'revoke', key_id, '--data', data]);
  expect(stdout).toContain(
    `No service was reached on ${data}; those elsewhere refuse it within 60 seconds.\n`,
  );
});

test('a key that is rotated without an overlap is refused by the running service with the next request, and the new one answered', async () => {
  const { key, key_id } = await createdKey();
  const server = await startChildServer(data, root.path);
  try {
    expect(await statusOf(server, key)).toBe(200);
    const rotated = await tdsJson(['key', 'rotate', key_id, '--overlap', 'none', '--data', data]);
    expect(await statusOf(server, key)).toBe(401);
    expect(await statusOf(server, textField(rotated, 'key'))).toBe(200);
  } finally {
    await server.stop();
  }
});

async function statusOf({ address }: { readonly address: string }, key: string): Promise<number> {
  const response = await fetch(`${address}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return response.status;
}

async function createdKey(): Promise<{ readonly key: string; readonly key_id: string }> {
  const created = await tdsJson(['key', 'create', 'Default', 'Live', '--data', data]);
  return { key: textField(created, 'key'), key_id: textField(created, 'id') };
}
