import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { openPlanner } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { booksOf, closeAudited, untilHeld, usageOf } from '../support/money.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { holdWriteLock } from '../support/write-lock.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

/** Of which one organization may have half. */
const QUEUE_LIMIT = 6;
const LEAVING_CLIENTS = 300;
const AT_ONCE = 20;
/** About as long as such a request takes on this many at once. */
const PATIENCE_MAX_MS = 60;

const budget = new BodyBudget();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: TestService;
beforeAll(async () => {
  directory = await temporaryDirectory();
  const model_path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(model_path, TINY_MARKERS);
  service = await startTestService({
    openPlanner: () => openPlanner({ model_path, gpu: false, threads: 1 }),
    queue_limit: QUEUE_LIMIT,
    body_limits: { budget },
  });
});
afterAll(async () => {
  await closeAudited(service);
  await directory[Symbol.asyncDispose]();
});

/** Resolves with the status of a request whose client leaves after that time; null if the client left first. */
async function askFor(key: string, patience_ms: number, mode: string): Promise<number | null> {
  try {
    const response = await service.fetch('/v1/decisions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...SMALL_REQUEST, state: 'Where is my parcel? '.repeat(300), mode }),
      signal: AbortSignal.timeout(patience_ms),
    });
    await response.text();
    return response.status;
  } catch {
    return null;
  }
}

test('clients that leave at any moment leave nothing behind: no hold, no place, no bytes of a body', async () => {
  const account = await addAccount(service);
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, {
    requests_per_minute: 1_000_000,
    tokens_per_minute: 1_000_000_000,
  });
  const outcomes: (number | null)[] = [];
  for (let sent = 0; sent < LEAVING_CLIENTS; sent += AT_ONCE) {
    // Some wait for the database, too, and leave then.
    const lock = (sent / AT_ONCE) % 3 === 0 ? await holdWriteLock(service.directory) : null;
    const asked = Array.from({ length: AT_ONCE }, (_, index) =>
      askFor(account.key, (index * PATIENCE_MAX_MS) / AT_ONCE, index % 2 === 0 ? 'fast' : 'consistent'),
    );
    outcomes.push(...(await Promise.all(asked)));
    await lock?.release();
  }
  expect(outcomes.filter((status) => status === null).length).toBeGreaterThan(LEAVING_CLIENTS / 4);

  // Once the engine has cancelled its work, all slots are free again. A leaked slot would refuse somebody for ever.
  let answered: readonly (number | null)[];
  do {
    answered = await Promise.all(
      Array.from({ length: QUEUE_LIMIT / 2 }, () => askFor(account.key, MODEL_TEST_TIMEOUT_MS, 'consistent')),
    );
  } while (answered.includes(502));
  await untilHeld(service, account, 0);
  expect(answered).toEqual(answered.map(() => 200));
  expect(budget.taken_bytes).toBe(0);
  const cost_micros = (await usageOf(service, account)).reduce((sum, row) => sum + row.cost_micros, 0);
  expect((await booksOf(service, account)).credit_micros).toBe(25_000_000 - cost_micros);
});
