import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { MAIN } from '../support/program.ts';
import { ALL_TYPES, post, SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { firstAsProcess, initializeData, tds, textField } from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const root = temporaryDirectory();
const data = join(root.path, 'data');
const { command, commandJson } = firstAsProcess();
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
  const rotated = await commandJson(['key', 'rotate', key_id, '--overlap', 'none', '--data', data]);
  expect(await statusOf(key)).toBe(401);
  expect(await statusOf(textField(rotated, 'key'))).toBe(200);
});

/** Does the work while the server hangs. */
async function whileItHangs<T>(work: () => Promise<T>): Promise<T> {
  server.signal('SIGSTOP');
  try {
    return await work();
  } finally {
    server.signal('SIGCONT');
  }
}

test('a service that hangs keeps no new key back, and holds no command up', async () => {
  const [rotated, revoked] = [await createdKey('Hanging'), await createdKey('Waiting')];
  let printed = '';
  const reading = await whileItHangs(async () => {
    const words = ['key', 'rotate', rotated.key_id, '--overlap', 'none', '--data', data];
    const { stdout } = Bun.spawn([process.execPath, MAIN, ...words], { stdout: 'pipe' });
    const read = async () => {
      for await (const text of stdout.pipeThrough(new TextDecoderStream())) printed += text;
    };
    const ended = read();
    await eventually(() => printed.includes('It is shown only this once.'));
    return { ended };
  });
  await reading.ended;
  expect(printed).toContain('is revoked. The service on');
  const { stdout } = await whileItHangs(() => tds(['key', 'revoke', revoked.key_id, '--data', data]));
  expect(stdout).toContain(`No service was reached on ${data}`);
});

test('keys of an organization that is suspended are refused by the running service with the next request', async () => {
  const made = await commandJson(['org', 'create', 'Flood', '--data', data]);
  const project = textField(made, 'default_project_id');
  // "Default" remains the name of one project.
  await commandJson(['project', 'rename', project, 'Flooded', '--data', data]);
  // Lookups of organizations that have paid nothing are not kept.
  await commandJson(['org', 'credit', 'Flood', '25', '--data', data]);
  const { key } = await createdKey('Flooding', project);
  expect(await statusOf(key)).toBe(200);
  await commandJson(['org', 'suspend', 'Flood', '--data', data]);
  expect(await statusOf(key)).toBe(401);
});

test('limits of an organization that are changed, and the keys of a project that is archived, count with the next request', async () => {
  const made = await commandJson(['org', 'create', 'Growing', '--data', data]);
  await commandJson(['project', 'rename', textField(made, 'default_project_id'), 'Growth', '--data', data]);
  await commandJson(['org', 'credit', 'Growing', '25', '--data', data]);
  const { key } = await createdKey('Growing', 'Growth');
  expect(await statusOf(key)).toBe(200);
  await commandJson(['org', 'tier', 'Growing', '--questions', '1', '--data', data]);
  const service = { fetch: (path: string, init?: RequestInit) => fetch(`${server.address}${path}`, init) };
  const refused = await post(service, key, { ...SMALL_REQUEST, questions: ALL_TYPES });
  expect(await refused.json()).toMatchObject({ error: { code: 'too_many_questions' } });
  const { stdout } = await command(['project', 'archive', 'Growth', '--data', data]);
  expect(stdout).toContain(
    `The service on ${data} refuses them from now on; other nodes do within 60 seconds.\n`,
  );
  expect(await statusOf(key)).toBe(401);
});

test('a key that is revoked is refused by the running service with the next request, and the command says what others need', async () => {
  const { key, key_id } = await createdKey('Revoked');
  // Read once, so that the service knows the key for a minute.
  expect(await statusOf(key)).toBe(200);
  const { code, stdout, stderr } = await command(['key', 'revoke', key_id, '--data', data]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(
    `The service on ${data} refuses it from now on; other nodes do within 60 seconds.\n`,
  );
  expect(await statusOf(key)).toBe(401);
  await server.stop();
  const again = await command(['key', 'revoke', key_id, '--data', data]);
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

async function createdKey(
  name: string,
  project = 'Default',
): Promise<{ readonly key: string; readonly key_id: string }> {
  const created = await commandJson(['key', 'create', project, name, '--data', data]);
  return { key: textField(created, 'key'), key_id: textField(created, 'id') };
}
