import { afterEach, beforeEach, expect, test } from 'bun:test';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { SqliteUsageReader } from '../../db/sqlite/usage-reader.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { firstSteps } from '../../src/accounts/first-steps.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { archiveProject, createProject, listProjects } from '../../src/accounts/projects.ts';
import { billing } from '../../src/payments/billing.ts';
import { creditByHand, refundByHand, startTopUp } from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import type { PaymentProvider } from '../../src/payments/provider.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { pruningOf } from '../ledger/support.ts';
import { type Books, openBooks, spend } from './support.ts';

const DOLLAR_MICROS = 1_000_000;
const DAY_MS = 86_400_000;

let books: Books;
beforeEach(async () => {
  books = await openBooks();
});
afterEach(() => books.remove());

const facts = () => billing(books.context, OPERATOR, manualProvider, books.organization_id);

function credit(dollars: number) {
  const { context, organization_id } = books;
  return creditByHand(context, OPERATOR, { organization_id, amount_micros: dollars * DOLLAR_MICROS });
}

test('an organization that paid nothing is told what the first tier takes', async () => {
  expect(await facts()).toMatchObject({
    credit_micros: 0,
    available_micros: 0,
    paid_micros: 0,
    first_paid_at_ms: null,
    tier: 0,
    limits: null,
    next_tier: {
      tier: 1,
      paid_micros: 5 * DOLLAR_MICROS,
      missing_micros: 5 * DOLLAR_MICROS,
      days_passed_at_ms: null,
    },
    tier_changes: [],
    top_up: {
      least_micros: 5 * DOLLAR_MICROS,
      most_micros: 25 * DOLLAR_MICROS,
      provider: 'manual',
      is_manual: true,
      is_allowed: true,
    },
    refunds: [],
  });
});

test('the next tier is told by what is missing of money and of time', async () => {
  const { clock } = books;
  const paid_at_ms = clock.now_ms();
  await credit(20);
  expect(await facts()).toMatchObject({
    tier: 1,
    limits: { requests_per_minute: 300, questions_per_request: 32 },
    first_paid_at_ms: paid_at_ms,
    next_tier: { tier: 2, missing_micros: 30 * DOLLAR_MICROS, days_passed_at_ms: paid_at_ms + 7 * DAY_MS },
    tier_changes: [{ from_tier: 0, to_tier: 1, reason: 'top_up' }],
  });
  await credit(60);
  expect((await facts()).next_tier).toMatchObject({ tier: 2, missing_micros: 0 });
  clock.advance(7 * DAY_MS - 1);
  expect((await facts()).tier).toBe(1);
  clock.advance(1);
  // A tier that time alone has lifted applies before it is written.
  expect(await facts()).toMatchObject({
    tier: 2,
    next_tier: { tier: 3, missing_micros: 170 * DOLLAR_MICROS, days_passed_at_ms: paid_at_ms + 14 * DAY_MS },
    top_up: { most_micros: 100 * DOLLAR_MICROS },
  });
});

test('dedicated limits are told beside what is in force, and there is nothing above the highest tier', async () => {
  const { organization_id, context } = books;
  await context.store.accounts.writeTierSettings(organization_id, {
    minimum_tier: 5,
    requests_per_minute: 9_000,
  });
  expect(await facts()).toMatchObject({
    tier: 5,
    minimum_tier: 5,
    limits: { requests_per_minute: 9_000, tokens_per_minute: 5_000_000 },
    dedicated_limits: { requests_per_minute: 9_000, tokens_per_minute: null },
    next_tier: null,
  });
});

test('what is held is not available, and refunds have a list of their own', async () => {
  const { organization_id, context, project_id } = books;
  await credit(20);
  await spend(books, 1_000);
  await refundByHand(context, OPERATOR, { organization_id, amount_micros: 3 * DOLLAR_MICROS });
  const at_ms = books.clock.now_ms();
  const open = { organization_id, project_id, request_id: 'req_open', amount_micros: 70, at_ms };
  new SqliteLedger(books.db).hold(open, 'proc_test');
  expect(await facts()).toMatchObject({
    credit_micros: 17 * DOLLAR_MICROS - 1_000,
    held_micros: 70,
    open_holds: 1,
    available_micros: 17 * DOLLAR_MICROS - 1_070,
    paid_micros: 17 * DOLLAR_MICROS,
    refunds: [{ kind: 'refund', amount_micros: 3 * DOLLAR_MICROS, status: 'completed' }],
  });
});

test('a started top-up is pending, with the checkout of the provider or none', async () => {
  const { organization_id, context } = books;
  const given = { organization_id, amount_micros: 10 * DOLLAR_MICROS };
  const elsewhere: PaymentProvider = {
    ...manualProvider,
    name: 'elsewhere',
    createCheckout: ({ payment_id }) =>
      Promise.resolve({ external_id: `ext_${payment_id}`, url: 'https://pay.example/1' }),
  };
  const paid = await startTopUp(context, OPERATOR, elsewhere, given);
  expect(paid.checkout.url).toBe('https://pay.example/1');
  expect((await startTopUp(context, OPERATOR, manualProvider, given)).checkout.url).toBeNull();
  const told = await billing(context, OPERATOR, elsewhere, organization_id);
  expect(told.top_up).toMatchObject({ provider: 'elsewhere', is_manual: false });
  expect(told.pending.map(({ provider }) => provider).sort()).toEqual(['elsewhere', 'manual']);
});

test('every member sees billing, and is told whether their role may top up', async () => {
  const { organization_id, context } = books;
  const { accounts } = context.store;
  for (const [user_id, role] of [
    ['usr_billing', 'billing'],
    ['usr_reader', 'reader'],
    ['usr_stranger', null],
  ] as const) {
    await accounts.insertUser({
      id: user_id,
      email: `${user_id}@example.com`,
      name: user_id,
      created_at_ms: 0,
    });
    if (role !== null) await accounts.insertMember({ organization_id, user_id, role, created_at_ms: 0 });
  }
  const as = (user_id: string) =>
    billing(context, { kind: 'user', user_id }, manualProvider, organization_id);
  expect((await as('usr_billing')).top_up.is_allowed).toBe(true);
  expect((await as('usr_reader')).top_up.is_allowed).toBe(false);
  await expect(as('usr_stranger')).rejects.toMatchObject({ code: 'not_found' });
});

test('the first steps tick themselves off, and stay so', async () => {
  const { organization_id, context, project_id, clock, db } = books;
  const reads = { store: context.store, reader: new SqliteUsageReader(db) };
  const steps = () => firstSteps(reads, OPERATOR, organization_id);
  const nothing = { credit_added_at_ms: null, key_created_at_ms: null, first_answer_at_ms: null };
  expect(await steps()).toEqual(nothing);
  await startTopUp(context, OPERATOR, manualProvider, { organization_id, amount_micros: 10 * DOLLAR_MICROS });
  expect(await steps()).toEqual(nothing);
  const credit_added_at_ms = clock.now_ms();
  await credit(10);
  clock.advance(5);
  const key_created_at_ms = clock.now_ms();
  const { id: key_id } = await createKey(context, OPERATOR, { project_id, name: 'first' });
  await revokeKey(context, OPERATOR, key_id);
  expect(await steps()).toEqual({ ...nothing, credit_added_at_ms, key_created_at_ms });
  clock.advance(5);
  const first_answer_at_ms = clock.now_ms();
  await spend(books, 10);
  clock.advance(5);
  await spend(books, 10);
  const done = { credit_added_at_ms, key_created_at_ms, first_answer_at_ms };
  expect(await steps()).toEqual(done);
  clock.advance(40 * DAY_MS);
  await credit(10);
  await pruneUsage(pruningOf(db), { before_ms: first_answer_at_ms + 6, now_ms: clock.now_ms() });
  const end_ms = Math.floor(first_answer_at_ms / DAY_MS) * DAY_MS + DAY_MS - 1;
  expect(await steps()).toEqual({ ...done, first_answer_at_ms: end_ms });
  const stranger = { kind: 'user', user_id: 'usr_nobody' } as const;
  await expect(firstSteps(reads, stranger, organization_id)).rejects.toMatchObject({ code: 'not_found' });
});

test('a project is listed with its month and with the keys that archiving it ends', async () => {
  const { organization_id, context, project_id } = books;
  await credit(10);
  books.clock.advance(1);
  await createProject(context, OPERATOR, { organization_id, name: 'Second' });
  await spend(books, 700);
  const { id } = await createKey(context, OPERATOR, { project_id, name: 'another' });
  const { id: revoked } = await createKey(context, OPERATOR, { project_id, name: 'revoked' });
  await revokeKey(context, OPERATOR, revoked);
  expect(id).not.toBe(revoked);
  expect(await listProjects(context, OPERATOR, { organization_id })).toMatchObject([
    { name: 'Default', spent_this_month_micros: 700, active_keys: 2 },
    { name: 'Second', spent_this_month_micros: 0, active_keys: 0 },
  ]);
  await archiveProject(context, OPERATOR, project_id);
  expect(await listProjects(context, OPERATOR, { organization_id, archived: true })).toMatchObject([
    { spent_this_month_micros: 700, active_keys: 0 },
  ]);
});
