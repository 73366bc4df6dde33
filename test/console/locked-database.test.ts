import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { holdWriteLock } from '../support/write-lock.ts';
import { addPerson, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let made: TestConsole;
beforeAll(async () => {
  made = await startTestConsole({ writes: { lock_deadline_ms: 50 } });
});
afterAll(() => made.close());

test('while another process keeps the write lock, pages read on, and a change is told to try again', async () => {
  const ada = await addPerson(made, { email: 'ada@example.com' });
  const projects = `/console/api/organizations/${ada.organization_id}/projects/`;
  const change = () => ada.ask(projects, { method: 'POST', body: { name: 'Night shift' } });

  const lock = await holdWriteLock(made.service.directory);
  const refused = await change();
  const seen = await ada.ask(projects);
  await lock.release();

  expect(refused.status).toBe(503);
  expect(await refused.json()).toEqual({
    error: {
      type: 'overloaded_error',
      code: 'auth_unavailable',
      message: 'The service is briefly unavailable: try again in a moment.',
      param: null,
    },
    request_id: refused.headers.get('x-request-id'),
  });
  expect(seen.status).toBe(200);
  expect((await change()).status).toBe(200);
});
