import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { payments } from '../../db/sqlite/schema.ts';
import { type Actor, OPERATOR } from '../../src/accounts/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import type { Role } from '../../src/accounts/roles.ts';
import { listTierChanges, readOrganization, recalculateTiers } from '../../src/accounts/synchronous.ts';
import { signUp } from '../../src/accounts/users.ts';
import {
  confirmManualPayment,
  creditByHand,
  listPendingPayments,
  refundByHand,
  startTopUp,
  topUpRange,
} from '../../src/payments/credit.ts';
import { creditHistory } from '../../src/payments/history.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import type { PaymentProvider } from '../../src/payments/provider.ts';
import { expectCleanAudit, openBooks, spend } from './support.ts';

const DOLLAR = 1_000_000;
const DAY_MS = 86_400_000;

let books: Awaited<ReturnType<typeof openBooks>>;

beforeEach(async () => {
  books = await openBooks();
});

afterEach(() => {
  expectCleanAudit(books);
  books.remove();
});

function credit(amount_micros: number) {
  return creditByHand(books.context, OPERATOR, { organization_id: books.organization_id, amount_micros });
}

function refund(amount_micros: number) {
  return refundByHand(books.context, OPERATOR, { organization_id: books.organization_id, amount_micros });
}

function organization() {
  return readOrganization(books.context, books.organization_id);
}

async function memberWithRole(role: Role): Promise<Actor> {
  const { user } = await signUp(books.context, { email: `${role}@example.com`, name: role });
  await addMember(books.context, OPERATOR, {
    organization_id: books.organization_id,
    user_id: user.id,
    role,
  });
  return { kind: 'user', user_id: user.id };
}

function topUp(actor: Actor, amount_micros: number, provider: PaymentProvider = manualProvider) {
  return startTopUp(books.context, actor, provider, {
    organization_id: books.organization_id,
    amount_micros,
  });
}

describe('tier', () => {
  test('Tier 1 comes at once with $5 paid in all, not before', () => {
    expect(credit(5 * DOLLAR - 1).tier).toBe(0);
    expect(credit(1).tier).toBe(1);
  });

  test('Tier 2 needs $50 and 7 days: the second bar lifts by time alone', () => {
    expect(credit(50 * DOLLAR).tier).toBe(1);
    books.clock.advance(7 * DAY_MS - 1);
    recalculateTiers(books.db, books.clock.now_ms());
    expect(organization().tier).toBe(1);
    books.clock.advance(1);
    recalculateTiers(books.db, books.clock.now_ms());
    expect(organization().tier).toBe(2);
    expect(listTierChanges(books.db, books.organization_id, 10)).toMatchObject([
      { from_tier: 1, to_tier: 2, reason: 'time', created_at_ms: books.clock.now_ms() },
      { from_tier: 0, to_tier: 1, reason: 'top_up' },
    ]);
  });

  test('a purchase can lift by more than one tier when the days have passed', () => {
    credit(5 * DOLLAR);
    books.clock.advance(60 * DAY_MS);
    expect(credit(2_495 * DOLLAR).tier).toBe(5);
  });

  test('recalculating again changes and notes nothing', () => {
    credit(50 * DOLLAR);
    for (let round = 0; round < 3; round += 1) recalculateTiers(books.db, books.clock.now_ms());
    expect(listTierChanges(books.db, books.organization_id, 10)).toHaveLength(1);
  });

  test('a wall clock that steps back takes no tier away', () => {
    credit(50 * DOLLAR);
    books.clock.advance(7 * DAY_MS);
    recalculateTiers(books.db, books.clock.now_ms());
    books.clock.advance(-5 * DAY_MS);
    recalculateTiers(books.db, books.clock.now_ms());
    expect(organization().tier).toBe(2);
    expect(credit(5 * DOLLAR).tier).toBe(2);
  });

  test('a refund lowers it, and the balance can fall below zero', async () => {
    credit(25 * DOLLAR);
    await spend(books, 20 * DOLLAR);
    expect(refund(21 * DOLLAR)).toMatchObject({
      tier: 0,
      credit_micros: -16 * DOLLAR,
      paid_micros: 4 * DOLLAR,
    });
    expect(listTierChanges(books.db, books.organization_id, 1)).toMatchObject([
      { from_tier: 1, to_tier: 0, reason: 'refund' },
    ]);
  });

  test('the days since the first payment start anew when everything was refunded', () => {
    credit(50 * DOLLAR);
    books.clock.advance(60 * DAY_MS);
    refund(50 * DOLLAR);
    expect(organization().first_paid_at_ms).toBeNull();
    books.clock.advance(DAY_MS);
    expect(credit(2_500 * DOLLAR)).toMatchObject({ tier: 1, first_paid_at_ms: books.clock.now_ms() });
    books.clock.advance(7 * DAY_MS);
    recalculateTiers(books.db, books.clock.now_ms());
    expect(organization().tier).toBe(2);
  });

  test('the days go on when a part was refunded', () => {
    credit(50 * DOLLAR);
    const first_paid_at_ms = books.clock.now_ms();
    books.clock.advance(60 * DAY_MS);
    refund(50 * DOLLAR - 1);
    expect(credit(2_500 * DOLLAR)).toMatchObject({ tier: 5, first_paid_at_ms });
  });

  test('the range of one top-up is that of the tier that is earned now', () => {
    credit(50 * DOLLAR);
    const most = () => topUpRange(organization(), books.clock.now_ms()).most;
    books.clock.advance(7 * DAY_MS - 1);
    expect(most()).toBe(25 * DOLLAR);
    books.clock.advance(1);
    expect(most()).toBe(100 * DOLLAR);
    expect(organization().tier).toBe(1);
  });

  test('the operator’s minimum lifts at once, holds through refunds, and its end counts at once', async () => {
    credit(5 * DOLLAR);
    const set = async (minimum_tier: number | null) =>
      (await setTierSettings(books.context, OPERATOR, books.organization_id, { minimum_tier })).tier;
    expect(await set(4)).toBe(4);
    expect(refund(5 * DOLLAR).tier).toBe(4);
    expect(await set(null)).toBe(0);
    expect(listTierChanges(books.db, books.organization_id, 10).map((change) => change.reason)).toEqual([
      'operator',
      'operator',
      'top_up',
    ]);
  });
});

describe('refunds by hand', () => {
  test('take back no more than was paid by hand', () => {
    credit(10 * DOLLAR);
    expect(() => refund(10 * DOLLAR + 1)).toThrow(expect.objectContaining({ code: 'refund_exceeds_paid' }));
    refund(4 * DOLLAR);
    expect(() => refund(6 * DOLLAR + 1)).toThrow(expect.objectContaining({ code: 'refund_exceeds_paid' }));
    expect(refund(6 * DOLLAR)).toMatchObject({ credit_micros: 0, paid_micros: 0 });
  });
});

describe('top-ups', () => {
  for (const [name, amount, code] of [
    ['below the least', 5 * DOLLAR - 10_000, 'top_up_out_of_range'],
    ['above the most of Tier 0', 25 * DOLLAR + 10_000, 'top_up_out_of_range'],
    ['a fraction of a cent', 5 * DOLLAR + 1, 'invalid_amount'],
    ['nothing', 0, 'invalid_amount'],
    ['a fraction of a micro-dollar', 5.5, 'invalid_amount'],
    ['no number', Number.NaN, 'invalid_amount'],
  ] as const) {
    test(`are refused for an amount that is ${name}`, async () => {
      await expect(topUp(OPERATOR, amount)).rejects.toMatchObject({ code });
      expect(books.db.select().from(payments).all()).toEqual([]);
    });
  }

  test('may be as large as the dedicated limit where one is set', async () => {
    await setTierSettings(books.context, OPERATOR, books.organization_id, {
      top_up_max_micros: 5_000 * DOLLAR,
    });
    await topUp(OPERATOR, 5_000 * DOLLAR);
    await expect(topUp(OPERATOR, 5_001 * DOLLAR)).rejects.toMatchObject({ code: 'top_up_out_of_range' });
  });

  test('by hand keep to the range where that is asked for, the dedicated one too', async () => {
    const { organization_id } = books;
    const enter = (amount_micros: number) =>
      creditByHand(books.context, OPERATOR, { organization_id, amount_micros, within_range: true });
    const refused = expect.objectContaining({ code: 'top_up_out_of_range' });
    expect(() => enter(5 * DOLLAR - 1)).toThrow(refused);
    expect(() => enter(25 * DOLLAR + 1)).toThrow(refused);
    expect(books.db.select().from(payments).all()).toEqual([]);
    enter(5 * DOLLAR);
    enter(25 * DOLLAR);
    await setTierSettings(books.context, OPERATOR, organization_id, { top_up_max_micros: 5_000 * DOLLAR });
    expect(enter(5_000 * DOLLAR).credit_micros).toBe(5_030 * DOLLAR);
    expect(() => enter(5_000 * DOLLAR + 1)).toThrow(refused);
  });

  test('are made by owners, admins and billing members only', async () => {
    for (const [role, allowed] of [
      ['owner', true],
      ['admin', true],
      ['developer', false],
      ['billing', true],
      ['reader', false],
    ] as const) {
      const started = topUp(await memberWithRole(role), 5 * DOLLAR);
      if (allowed) expect((await started).payment_id).toStartWith('pay_');
      else await expect(started).rejects.toMatchObject({ code: 'permission_denied' });
    }
  });

  test('add no credit until the operator confirms, and then once', async () => {
    const { payment_id } = await topUp(await memberWithRole('owner'), 25 * DOLLAR);
    expect(organization().credit_micros).toBe(0);
    expect(listPendingPayments(books.context, OPERATOR)).toMatchObject([
      { id: payment_id, amount_micros: 25 * DOLLAR },
    ]);
    confirmManualPayment(books.context, OPERATOR, payment_id);
    expect(organization()).toMatchObject({ credit_micros: 25 * DOLLAR, tier: 1 });
    expect(() => confirmManualPayment(books.context, OPERATOR, payment_id)).toThrow(
      expect.objectContaining({ code: 'payment_settled' }),
    );
    expect(organization().credit_micros).toBe(25 * DOLLAR);
    expect(listPendingPayments(books.context, OPERATOR)).toEqual([]);
  });

  test('leave nothing behind when the provider fails', async () => {
    const failing: PaymentProvider = {
      ...manualProvider,
      createCheckout: () => Promise.reject(new Error('down')),
    };
    await expect(topUp(OPERATOR, 5 * DOLLAR, failing)).rejects.toMatchObject({
      code: 'payment_provider_failed',
    });
    expect(books.db.select().from(payments).all()).toEqual([]);
  });
});

test('confirming, crediting and refunding are the operator’s alone', async () => {
  const owner = await memberWithRole('owner');
  const given = { organization_id: books.organization_id, amount_micros: DOLLAR };
  const denied = expect.objectContaining({ code: 'permission_denied' });
  expect(() => creditByHand(books.context, owner, given)).toThrow(denied);
  expect(() => refundByHand(books.context, owner, given)).toThrow(denied);
  expect(() => confirmManualPayment(books.context, owner, 'pay_1')).toThrow(denied);
  expect(() => listPendingPayments(books.context, owner)).toThrow(denied);
  const lifted = setTierSettings(books.context, owner, given.organization_id, { minimum_tier: 5 });
  await expect(lifted).rejects.toEqual(denied);
});

test('payment, ledger and tier are one commit: when the tier cannot be written, nothing is', () => {
  books.db.$client.run(
    "CREATE TRIGGER broken BEFORE INSERT ON tier_changes BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  expect(() => credit(25 * DOLLAR)).toThrow();
  expect(organization()).toMatchObject({ credit_micros: 0, paid_micros: 0, tier: 0, first_paid_at_ms: null });
  expect(books.db.select().from(payments).all()).toEqual([]);
});

test('the history shows every movement with the balance after it, and every tier change, newest first', async () => {
  credit(25 * DOLLAR);
  books.clock.advance(1_000);
  await spend(books, 150);
  books.clock.advance(1_000);
  refund(25 * DOLLAR);
  const given = { organization_id: books.organization_id, limit: 10 };
  const history = creditHistory(books.context, OPERATOR, given);
  expect(history).toMatchObject([
    { kind: 'tier_change', from_tier: 1, to_tier: 0, reason: 'refund' },
    { kind: 'refund', amount_micros: -25 * DOLLAR, balance_micros: -150 },
    { kind: 'charge', amount_micros: -150, balance_micros: 25 * DOLLAR - 150, project_id: books.project_id },
    { kind: 'tier_change', from_tier: 0, to_tier: 1, reason: 'top_up' },
    { kind: 'top_up', amount_micros: 25 * DOLLAR, balance_micros: 25 * DOLLAR },
  ]);
  expect(creditHistory(books.context, OPERATOR, { ...given, limit: 2 })).toEqual(history.slice(0, 2));
  const { user } = await signUp(books.context, { email: 'stranger@example.com', name: 'Stranger' });
  expect(() => creditHistory(books.context, { kind: 'user', user_id: user.id }, given)).toThrow(
    expect.objectContaining({ code: 'not_found' }),
  );
});

test('a payment row tells who started it, and when it was settled', async () => {
  const owner = await memberWithRole('owner');
  const { payment_id } = await topUp(owner, 5 * DOLLAR);
  const started_at_ms = books.clock.now_ms();
  books.clock.advance(5_000);
  confirmManualPayment(books.context, OPERATOR, payment_id);
  expect(books.db.select().from(payments).where(eq(payments.id, payment_id)).get()).toMatchObject({
    created_by_user_id: owner.kind === 'user' ? owner.user_id : '',
    created_at_ms: started_at_ms,
    settled_at_ms: started_at_ms + 5_000,
    status: 'completed',
  });
});
