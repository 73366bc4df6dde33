import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DecisionEngine } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { readOrganization } from '../../src/accounts/organizations.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, ledgerOf, usageOf } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { holdWriteLock } from '../support/write-lock.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** For requests that must reach it, and for those that must not. */
const SHORT_DEADLINE_MS = 1_500;
const LONG_DEADLINE_MS = 50_000;
/** One busy wait of SQLite on the event loop is longer than the deadline: so many lists would be answered at most. */
const LISTS_WHILE_BLOCKED = 2;
const provider = paddleProvider(SETTINGS);

let short: TestService;
let long: TestService;
/** The gate that an evaluation of a gated engine passes before it starts. */
let gate: Gate | undefined;

function gatedEngine(engine: DecisionEngine): DecisionEngine {
  return intercepted(engine, async (run) => {
    await gate?.pass();
    return await run();
  });
}

beforeAll(async () => {
  short = await startTestService({
    openEngine: gatedEngine,
    writes: { lock_deadline_ms: SHORT_DEADLINE_MS },
  });
  long = await startTestService({
    payment_provider: provider,
    writes: { lock_deadline_ms: LONG_DEADLINE_MS },
  });
});
afterAll(async () => {
  await closeAudited(short);
  await closeAudited(long);
});

/** Asks for the models again and again until `ended`; returns how often that was answered with 200. */
async function modelListsUntil(
  service: TestService,
  { key }: TestAccount,
  ended: Promise<unknown>,
): Promise<number> {
  let is_over = false;
  const over = () => {
    is_over = true;
  };
  ended.then(over, over);
  let answered = 0;
  while (!is_over) {
    const response = await service.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });
    expect(response.status).toBe(200);
    answered += 1;
  }
  return answered;
}

test('while another process keeps the write lock, the models are listed, and decisions are refused unpaid at their deadline', async () => {
  const account = await addAccount(short);
  const before = await booksOf(short, account);
  const lock = await holdWriteLock(short.directory);
  const decisions = Promise.all(Array.from({ length: 8 }, () => ask(short, account.key)));
  expect(await modelListsUntil(short, account, decisions)).toBeGreaterThan(LISTS_WHILE_BLOCKED);
  for (const response of await decisions) {
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'billing_unavailable' } });
  }
  expect(await booksOf(short, account)).toEqual(before);
  await lock.release();
  expect((await ask(short, account.key)).status).toBe(200);
  expect(await booksOf(short, account)).toMatchObject({ held_micros: 0, usage_rows: 1 });
});

test('decisions that wait for the lock are answered when it is given back, each of them charged once', async () => {
  const account = await addAccount(long);
  const lock = await holdWriteLock(long.directory);
  let answered = 0;
  const decisions = Array.from({ length: 8 }, async () => {
    const response = await ask(long, account.key);
    answered += 1;
    expect(response.status).toBe(200);
  });
  const headers = { authorization: `Bearer ${account.key}` };
  for (let list = 0; list < 20; list += 1)
    expect((await long.fetch('/v1/models', { headers })).status).toBe(200);
  expect(answered).toBe(0);
  await lock.release();
  await Promise.all(decisions);
  const costs = (await usageOf(long, account)).map(({ cost_micros }) => cost_micros);
  expect(await booksOf(long, account)).toEqual({
    credit_micros: 25_000_000 - costs.reduce((sum, cost) => sum + cost, 0),
    held_micros: 0,
    usage_rows: decisions.length,
  });
  expect(Math.min(...costs)).toBeGreaterThan(0);
});

test('an answer whose charge meets the lock is refused at the deadline, and its hold is released afterwards', async () => {
  const account = await addAccount(short);
  gate = new Gate();
  const answer = ask(short, account.key);
  await gate.reached;
  const lock = await holdWriteLock(short.directory);
  gate.open();
  gate = undefined;
  expect(await modelListsUntil(short, account, answer)).toBeGreaterThan(LISTS_WHILE_BLOCKED);
  expect(await (await answer).json()).toMatchObject({ error: { code: 'billing_unavailable' } });
  await lock.release();
  await short.service.services.books.whenSettled();
  expect(await booksOf(short, account)).toMatchObject({ credit_micros: 25_000_000, held_micros: 0 });
  expect((await ledgerOf(short, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  expect((await usageOf(short, account)).map(({ status }) => status)).toEqual([503]);
});

test('a payment that is reported while the lock is kept is credited once when it is given back', async () => {
  const account = await addAccount(long, { credit_dollars: 0 });
  const { organization_id } = account;
  const checkout = { external_id: 'txn_locked', url: 'https://pay.example/' };
  await startTopUp(
    long.accounts,
    OPERATOR,
    { ...provider, createCheckout: () => Promise.resolve(checkout) },
    { organization_id, amount_micros: 25_000_000 },
  );
  const lock = await holdWriteLock(long.directory);
  const { body, signature } = sign(transaction('transaction.completed', { id: 'txn_locked' }));
  const headers = { 'content-type': 'application/json', 'paddle-signature': signature ?? '' };
  const reported = long.fetch('/webhooks/paddle', { method: 'POST', headers, body });
  const authorization = { headers: { authorization: `Bearer ${account.key}` } };
  for (let list = 0; list < 20; list += 1)
    expect((await long.fetch('/v1/models', authorization)).status).toBe(200);
  expect((await readOrganization(long.accounts.store, organization_id)).credit_micros).toBe(0);
  await lock.release();
  expect((await reported).status).toBe(200);
  expect((await readOrganization(long.accounts.store, organization_id)).credit_micros).toBe(25_000_000);
});

test('a service that is stopped while the lock is kept ends, and the next start releases what it could not', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
  const service = await startTestService({
    directory,
    openEngine: gatedEngine,
    writes: { lock_deadline_ms: SHORT_DEADLINE_MS },
  });
  const account = await addAccount(service);
  gate = new Gate();
  const answer = ask(service, account.key);
  await gate.reached;
  const lock = await holdWriteLock(directory);
  gate.open();
  gate = undefined;
  expect((await answer).status).toBe(503);
  await service.close();
  await lock.release();
  const next = await startTestService({ directory });
  expect(await booksOf(next, account)).toMatchObject({ credit_micros: 25_000_000, held_micros: 0 });
  expect((await ledgerOf(next, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  await closeAudited(next);
  rmSync(directory, { recursive: true, force: true });
});
