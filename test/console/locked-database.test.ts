import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { limitFileSize } from '../ledger/file-size-limit.ts';
import { eventually } from '../support/eventually.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { holdWriteLock } from '../support/write-lock.ts';
import { addPerson, PASSWORD, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let made: TestConsole;
beforeAll(async () => {
  made = await startTestConsole({ writes: { lock_deadline_ms: 200 } });
});
afterAll(() => made.close());

const AWAY = {
  type: 'overloaded_error',
  code: 'auth_unavailable',
  message: 'The service is briefly unavailable: try again in a moment.',
  param: null,
};

/** The causes of a database without writes. Each begins, and resolves with the function that ends it. */
const CAUSES: readonly (readonly [cause: string, begin: () => Promise<() => Promise<void>>])[] = [
  [
    'another process keeps the write lock',
    async () => {
      const lock = await holdWriteLock(made.service.directory);
      return () => lock.release();
    },
  ],
  [
    'the disk is full',
    () => {
      limitFileSize(0);
      return Promise.resolve(() => Promise.try(() => limitFileSize(null)));
    },
  ],
];

test.each(CAUSES)('while %s, pages read on, and a change is told to try again', async (cause, begin) => {
  const ada = await addPerson(made, { email: `ada@${cause.replaceAll(' ', '-')}.example.com` });
  const organization = `/console/api/organizations/${ada.organization_id}`;
  const change = () =>
    ada.ask(`${organization}/projects/`, { method: 'POST', body: { name: 'Night shift' } });
  const signInAgain = () =>
    ada.ask('/console/api/sign-in', { body: { email: ada.email, password: PASSWORD } });
  const changePassword = () =>
    ada.ask('/console/api/password', {
      body: { current_password: PASSWORD, new_password: `${PASSWORD} 2` },
    });
  const signOut = () => ada.ask('/console/api/sign-out', { method: 'POST' });
  // Ten minutes without a request: the next one notes that the session is used.
  await made.service.execute('UPDATE sessions SET expires_at_ms = expires_at_ms - 600000');

  const end = await begin();
  const refused: Response[] = [];
  const seen: Response[] = [];
  try {
    for (const path of ['projects/', 'billing', 'first-steps', 'keys/', 'models/']) {
      seen.push(await ada.ask(`${organization}/${path}`));
    }
    seen.push(await ada.ask('/console/api/session'));
    refused.push(await change(), await signInAgain(), await changePassword(), await signOut());
  } finally {
    await end();
  }

  expect(seen.map(({ status }) => status)).toEqual(seen.map(() => 200));
  expect(await seen.at(-1)?.json()).toMatchObject({ user: { id: ada.user_id } });
  for (const response of refused) {
    expect(await response.json()).toEqual({
      error: AWAY,
      request_id: response.headers.get('x-request-id'),
    });
    expect(response.status).toBe(503);
  }
  expect((await change()).status).toBe(200);
  expect((await signInAgain()).status).toBe(200);
  expect((await signOut()).status).toBe(200);
});

test('an answer does not wait until a session that it extends can be written, and it is extended all the same', async () => {
  // Nobody waits as long as that for a lock.
  const patient = await startTestConsole({ writes: { lock_deadline_ms: 1_000_000 } });
  const ada = await addPerson(patient, { email: 'ada@example.com' });
  const ends = async () => {
    const [row] = await patient.service.execute('SELECT expires_at_ms FROM sessions');
    return Number(row?.expires_at_ms);
  };
  const extended_ms = await ends();
  await patient.service.execute('UPDATE sessions SET expires_at_ms = expires_at_ms - 600000');
  const lock = await holdWriteLock(patient.service.directory);
  try {
    const models = `/console/api/organizations/${ada.organization_id}/models/`;
    for (const path of ['/console/api/session', '/console/api/session', models]) {
      expect((await ada.ask(path)).status).toBe(200);
    }
    expect(await ends()).toBeLessThan(extended_ms);
  } finally {
    await lock.release();
  }
  await eventually(async () => (await ends()) >= extended_ms);
  await patient.close();
});
