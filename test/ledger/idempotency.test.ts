import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { IDEMPOTENCY_KEPT_MS } from '../../src/idempotency/claim.ts';
import { KEPT_BYTES_MAX, type KeptAnswer } from '../../src/store/kept-answer.ts';
import { LEDGER_DATABASES, type LedgerDatabase, openLedger } from './databases.ts';
import { COST_MICROS, CREDIT_MICROS, HELD_MICROS, NOW_MS, usageOf } from './support.ts';

setDefaultTimeout(120_000);

/** An account, and the database that it is in. */
type Owner = Pick<LedgerDatabase, 'account' | 'books' | 'store' | 'request'>;

const claimOf = ({ account }: Owner, key_hash: string) => ({
  api_key_id: account.api_key_id,
  key_hash,
  body_hash: 'body',
});

function kept(id: string, numbers: number[][] = [[0.9], [0.1, 0.9]]): KeptAnswer {
  const told = { created: 1, model: 'decision-1', mode: 'fast', input_tokens: 8, latency_ms: 1.5 } as const;
  return { id, ...told, cost_micros: COST_MICROS, numbers };
}

function hold(setup: Owner, request_id: string, key: string, at_ms = NOW_MS) {
  return setup.books.hold({
    ...setup.request(request_id, HELD_MICROS, at_ms),
    claim: claimOf(setup, key),
  });
}

async function chargeKept(setup: Owner, request_id: string, key: string, answer = kept(request_id)) {
  const result = await hold(setup, request_id, key);
  if (!result.held) throw new Error(result.refusal);
  const usage = (status: number, cost: number) => usageOf(setup.account, request_id, NOW_MS, status, cost);
  await setup.books.charge(result.hold, COST_MICROS, usage(200, COST_MICROS), usage(503, 0), answer);
}

const find = (setup: Owner, key: string) =>
  setup.store.idempotency.findClaim(claimOf(setup, key), NOW_MS - IDEMPOTENCY_KEPT_MS);

/** Adds another account, with the same credit. */
async function otherOwner(setup: LedgerDatabase): Promise<Owner> {
  const account = { organization_id: 'org_other', project_id: 'proj_other', api_key_id: 'key_other' };
  const { organization_id, project_id } = account;
  await setup.addAccount(account);
  await setup.addPayment(account, 'pay_other', 'top_up', CREDIT_MICROS);
  await setup.ledger.topUp({ ...setup.movement(CREDIT_MICROS, 'pay_other'), organization_id });
  const request: Owner['request'] = (...asked) => ({
    ...setup.request(...asked),
    organization_id,
    project_id,
  });
  return { account, books: setup.books, store: setup.store, request };
}

const TAKEN = { held: false, refusal: 'idempotency_key_in_use' } as const;

describe.each(LEDGER_DATABASES)('claims of idempotency keys in $name', (database) => {
  test('of holds with the same claim at the same time one is placed', async () => {
    await using setup = await openLedger(database);
    const results = await Promise.all([1, 2, 3].map((number) => hold(setup, `req_${number}`, 'key')));
    expect(results.filter(({ held }) => held)).toHaveLength(1);
    expect(results.filter(({ held }) => !held)).toEqual([TAKEN, TAKEN]);
    expect(await setup.kinds()).toEqual(['hold']);
    expect(await find(setup, 'key')).toEqual({ body_hash: 'body', kept: null });
  });

  test('a claim ends with the release of its hold, by a crash too', async () => {
    await using setup = await openLedger(database);
    const first = await hold(setup, 'req_1', 'key');
    if (first.held) await setup.release(first.hold, 'req_1');
    expect(await find(setup, 'key')).toBeUndefined();
    expect(await hold(setup, 'req_2', 'key')).toMatchObject({ held: true });
    const books = await setup.crash();
    expect(await books.recover()).toBe(1);
    expect(await find(setup, 'key')).toBeUndefined();
    await setup.expectSettled(0);
  });

  test('an answer is kept as it was given, in the commit of its charge', async () => {
    await using setup = await openLedger(database);
    await chargeKept(setup, 'req_1', 'key');
    expect(await find(setup, 'key')).toEqual({ body_hash: 'body', kept: kept('req_1') });
    expect(await hold(setup, 'req_2', 'key')).toEqual(TAKEN);
    await setup.crash();
    expect(await find(setup, 'key')).toEqual({ body_hash: 'body', kept: kept('req_1') });
    await setup.expectSettled(1);
  });

  test('a charge that cannot be committed keeps no answer', async () => {
    await using setup = await openLedger(database);
    const result = await hold(setup, 'req_1', 'key');
    const locked = await setup.lock();
    if (!result.held) throw new Error(result.refusal);
    const charging = setup.books.charge(
      result.hold,
      COST_MICROS,
      usageOf(setup.account, 'req_1', NOW_MS, 200, COST_MICROS),
      usageOf(setup.account, 'req_1', NOW_MS, 503, 0),
      kept('req_1'),
    );
    expect(await charging.catch((error: unknown) => error)).toEqual(setup.unavailable);
    await locked();
    await setup.books.whenSettled();
    expect(await find(setup, 'key')).toBeUndefined();
    await setup.expectSettled(0);
  });

  test('after 24 hours the key can be used again, before the maintenance has taken the answer away', async () => {
    await using setup = await openLedger(database);
    await chargeKept(setup, 'req_1', 'key');
    expect(await hold(setup, 'req_2', 'key', NOW_MS + IDEMPOTENCY_KEPT_MS - 1)).toEqual(TAKEN);
    expect(await hold(setup, 'req_3', 'key', NOW_MS + IDEMPOTENCY_KEPT_MS)).toMatchObject({ held: true });
    expect(await setup.store.idempotency.deleteAnswers(NOW_MS + 2 * IDEMPOTENCY_KEPT_MS, 9)).toBe(0);
  });

  test('an organization has no more bytes of answers than it may have: its oldest go first', async () => {
    await using setup = await openLedger(database);
    const other = await otherOwner(setup);
    await chargeKept(other, 'req_other', 'key');
    const large = Array.from({ length: 100_000 }, () => 0.1234567);
    const bytes = JSON.stringify(large).length;
    const count = Math.ceil(KEPT_BYTES_MAX / bytes) + 3;
    for (let number = 0; number < count; number += 1) {
      await chargeKept(setup, `req_${number}`, `key ${number}`, kept(`req_${number}`, [large]));
    }
    const found: boolean[] = [];
    for (let number = 0; number < count; number += 1) {
      found.push((await find(setup, `key ${number}`)) !== undefined);
    }
    const oldest = found.indexOf(true);
    expect(oldest).toBeGreaterThan(0);
    expect(found.slice(oldest)).not.toContain(false);
    // The oldest may begin before the bound, and nothing older is there.
    expect((count - oldest - 1) * bytes).toBeLessThanOrEqual(KEPT_BYTES_MAX);
    expect((count - oldest + 1) * bytes).toBeGreaterThan(KEPT_BYTES_MAX - bytes);
    expect(await find(other, 'key')).toEqual({ body_hash: 'body', kept: kept('req_other') });
  });
});
