import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { setSuspended } from '../../src/accounts/organizations.ts';
import { ADDRESS_REFUSALS_PER_MINUTE } from '../../src/limits/refusal-budgets.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { type Around, Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let around: Around = (run) => run();
beforeAll(async () => {
  service = await startTestService({
    clock: MovableClock.stopped(),
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));

const suspend = (organization_id: string, is_suspended: boolean) =>
  setSuspended(service.accounts, OPERATOR, { organization_id, is_suspended });
const list = (key: string) => service.fetch('/v1/models', { headers: { 'x-api-key': key } });

test('keys of a suspended organization are refused within 60 seconds, and work at once when it is lifted', async () => {
  const account = await addAccount(service);
  const other = await addAccount(service);
  await expectDecision(await ask(service, account.key));
  await suspend(account.organization_id, true);
  service.clock.advance(60_000);
  const charged = await booksOf(service, account);
  const error = await expectError(await ask(service, account.key), 'invalid_api_key');
  expect(error.error.message).toContain('is suspended');
  await expectError(await list(account.key), 'invalid_api_key');
  expect(await booksOf(service, account)).toEqual(charged);
  await expectDecision(await ask(service, other.key));
  await suspend(account.organization_id, false);
  await expectDecision(await ask(service, account.key));
});

test('a request that runs when its organization is suspended is answered and charged', async () => {
  const account = await addAccount(service);
  const gate = new Gate();
  around = gate.hold;
  const { credit_micros } = await booksOf(service, account);
  const waiting = ask(service, account.key);
  await gate.reached;
  await suspend(account.organization_id, true);
  service.service.services.keys.invalidate();
  await expectError(await ask(service, account.key), 'invalid_api_key');
  gate.open();
  await expectDecision(await waiting);
  around = (run) => run();
  expect(await booksOf(service, account)).toMatchObject({ held_micros: 0, usage_rows: 1 });
  const [row] = await usageOf(service, account);
  expect(credit_micros - (await booksOf(service, account)).credit_micros).toBe(row?.cost_micros ?? -1);
});

test('a client that goes on with such a key is refused unseen, and others of its address are not', async () => {
  const account = await addAccount(service);
  const other = await addAccount(service);
  await suspend(account.organization_id, true);
  const codes: number[] = [];
  for (let count = 0; count <= ADDRESS_REFUSALS_PER_MINUTE && !codes.includes(429); count += 1) {
    const response = await list(account.key);
    await response.text();
    codes.push(response.status);
  }
  expect(new Set(codes)).toEqual(new Set([401, 429]));
  expect((await list(other.key)).status).toBe(200);
});
