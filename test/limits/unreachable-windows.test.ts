import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { connectPostgres } from '../../db/postgres/connection.ts';
import { PostgresRateWindows } from '../../db/postgres/rate-windows.ts';
import { createApp } from '../../src/http/app.ts';
import { expectError } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { booksOf, closeAudited, ledgerOf, usageOf } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ clock: MovableClock.stopped() });
});
afterAll(() => closeAudited(service));

/** The service with windows on a port that nobody listens on: none that another test may get meanwhile. */
function withoutWindows(): Pick<TestService, 'fetch'> {
  const { services } = service.service;
  const limiter = new PostgresRateWindows({
    connect: () => connectPostgres('postgres://nobody@127.0.0.1:1/none'),
    clock: services.clock,
    onProblem: (error) => {
      throw error;
    },
  });
  const app = createApp({ ...services, limiter });
  return { fetch: async (path, init) => await app.handle(new Request(`http://localhost${path}`, init), '') };
}

test('a request is not answered while its rate windows cannot be reached: 503, no hold, no charge, no usage', async () => {
  const account = await addAccount(service);
  const { problems } = service.service.services;
  const before = { books: await booksOf(service, account), problems: problems.counts().rate_windows };
  const entries = (await ledgerOf(service, account)).length;
  await expectError(await ask(withoutWindows(), account.key), 'billing_unavailable');
  expect(await booksOf(service, account)).toEqual(before.books);
  expect((await ledgerOf(service, account)).length).toBe(entries);
  expect(await usageOf(service, account)).toEqual([]);
  expect(problems.counts().rate_windows).toBe(before.problems + 1);
  expect((await ask(service, account.key)).status).toBe(200);
});
