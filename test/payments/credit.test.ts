import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import { payments } from '../../db/sqlite/schema.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { readOrganization, setTierSettings } from '../../src/accounts/organizations.ts';
import { recalculateTiers } from '../../src/accounts/tier-changes.ts';
import { signUp } from '../../src/accounts/users.ts';
import type { Role } from '../../src/contract/roles.ts';
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
import { DAY_MS } from '../../src/time/clock.ts';
import { DOLLAR } from '../support/money.ts';
import { type Books, expectCleanAudit, openBooks, spend } from './support.ts';

let books: Books;

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
  return readOrganization(books.context.store, books.organization_id);
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
  test('Tier 1 comes at once with $5 paid in all, not before', async () => {
    expect((await credit(5 * DOLLAR - 1)).tier).toBe(0);
    expect((await credit(1)).tier).toBe(1);
  });

  test('Tier 2 needs $50 and 7 days: the second bar lifts by time alone', async () => {
    expect((await credit(50 * DOLLAR)).tier).toBe(1);
    books.clock.advance(7 * DAY_MS - 1);
    await recalculateTiers(books.context.store, books.clock.now_ms());
    expect((await organization()).tier).toBe(1);
    books.clock.advance(1);
    await recalculateTiers(books.context.store, books.clock.now_ms());
    expect((await organization()).tier).toBe(2);
    expect(await books.context.store.accounts.tierChanges(books.organization_id, 10)).toMatchObject([
      { from_tier: 1, to_tier: 2, reason: 'time', created_at_ms: books.clock.now_ms() },
      { from_tier: 0, to_tier: 1, reason: 'top_up' },
    ]);
  });

  test('a purchase can lift by more than one tier when the days have passed', async () => {
    await credit(5 * DOLLAR);
    books.clock.advance(60 * DAY_MS);
    expect((await credit(2_495 * DOLLAR)).tier).toBe(5);
  });

  test('recalculating again changes and notes nothing', async () => {
    await credit(50 * DOLLAR);
    for (let round = 0; round < 3; round += 1)
      await recalculateTiers(books.context.store, books.clock.now_ms());
    expect(await books.context.store.accounts.tierChanges(books.organization_id, 10)).toHaveLength(1);
  });

  test('a wall clock that steps back takes no tier away', async () => {
    await credit(50 * DOLLAR);
    books.clock.advance(7 * DAY_MS);
    await recalculateTiers(books.context.store, books.clock.now_ms());
    books.clock.advance(-5 * DAY_MS);
    await recalculateTiers(books.context.store, books.clock.now_ms());
    expect((await organization()).tier).toBe(2);
    expect((await credit(5 * DOLLAR)).tier).toBe(2);
  });

  test('a refund lowers it, and the balance can fall below zero', async () => {
    await credit(25 * DOLLAR);
    await spend(books, 20 * DOLLAR);
    expect(await refund(21 * DOLLAR)).toMatchObject({
      tier: 0,
      credit_micros: -16 * DOLLAR,
      paid_micros: 4 * DOLLAR,
    });
    expect(await books.context.store.accounts.tierChanges(books.organization_id, 1)).toMatchObject([
      { from_tier: 1, to_tier: 0, reason: 'refund' },
    ]);
  });

  test('the days since the first payment start anew when everything was refunded', async () => {
    await credit(50 * DOLLAR);
    books.clock.advance(60 * DAY_MS);
    await refund(50 * DOLLAR);
    expect((await organization()).first_paid_at_ms).toBeNull();
    books.clock.advance(DAY_MS);
    expect(await credit(2_500 * DOLLAR)).toMatchObject({ tier: 1, first_paid_at_ms: books.clock.now_ms() });
    books.clock.advance(7 * DAY_MS);
    await recalculateTiers(books.context.store, books.clock.now_ms());
    expect((await organization()).tier).toBe(2);
  });

  test('the days go on when a part was refunded', async () => {
    await credit(50 * DOLLAR);
    const first_paid_at_ms = books.clock.now_ms();
    books.clock.advance(60 * DAY_MS);
    await refund(50 * DOLLAR - 1);
    expect(await credit(2_500 * DOLLAR)).toMatchObject({ tier: 5, first_paid_at_ms });
  });

  test('the range of one top-up is that of the tier that is earned now', async () => {
    await credit(50 * DOLLAR);
    const most = async () => topUpRange(await organization(), books.clock.now_ms()).most;
    books.clock.advance(7 * DAY_MS - 1);
    expect(await most()).toBe(25 * DOLLAR);
    books.clock.advance(1);
    expect(await most()).toBe(100 * DOLLAR);
    expect((await organization()).tier).toBe(1);
  });

  test('the operator’s minimum lifts at once, holds through refunds, and its end counts at once', async () => {
    await credit(5 * DOLLAR);
    const set = async (minimum_tier: number | null) =>
      (await setTierSettings(books.context, OPERATOR, books.organization_id, { minimum_tier })).tier;
    expect(await set(4)).toBe(4);
    expect((await refund(5 * DOLLAR)).tier).toBe(4);
    expect(await set(null)).toBe(0);
    expect(
      (await books.context.store.accounts.tierChanges(books.organization_id, 10)).map(
        (change) => change.reason,
      ),
    ).toEqual(['operator', 'operator', 'top_up']);
  });
});

describe('refunds by hand', () => {
  test('take back no more than was paid by hand', async () => {
    await credit(10 * DOLLAR);
    await expect(refund(10 * DOLLAR + 1)).rejects.toThrow(
      expect.objectContaining({ code: 'refund_exceeds_paid' }),
    );
    await refund(4 * DOLLAR);
    await expect(refund(6 * DOLLAR + 1)).rejects.toThrow(
      expect.objectContaining({ code: 'refund_exceeds_paid' }),
    );
    expect(await refund(6 * DOLLAR)).toMatchObject({ credit_micros: 0, paid_micros: 0 });
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

  test('by hand end where a sum would be rounded, so that every balance is exact', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(await credit(most - 5)).toMatchObject({ credit_micros: most - 5 });
    await spend(books, 9);
    await expect(credit(6)).rejects.toMatchObject({ code: 'invalid_amount' });
    expect(await credit(5)).toMatchObject({ paid_micros: most, credit_micros: most - 9 });
  });

  test('by hand keep to the range where that is asked for, the dedicated one too', async () => {
    const { organization_id } = books;
    const enter = (amount_micros: number) =>
      creditByHand(books.context, OPERATOR, { organization_id, amount_micros, within_range: true });
    const refused = expect.objectContaining({ code: 'top_up_out_of_range' });
    await expect(enter(5 * DOLLAR - 1)).rejects.toThrow(refused);
    await expect(enter(25 * DOLLAR + 1)).rejects.toThrow(refused);
    expect(books.db.select().from(payments).all()).toEqual([]);
    await enter(5 * DOLLAR);
    await enter(25 * DOLLAR);
    await setTierSettings(books.context, OPERATOR, organization_id, { top_up_max_micros: 5_000 * DOLLAR });
    expect((await enter(5_000 * DOLLAR)).credit_micros).toBe(5_030 * DOLLAR);
    await expect(enter(5_000 * DOLLAR + 1)).rejects.toThrow(refused);
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
    expect((await organization()).credit_micros).toBe(0);
    expect(await listPendingPayments(books.context, OPERATOR)).toMatchObject([
      { id: payment_id, amount_micros: 25 * DOLLAR },
    ]);
    await confirmManualPayment(books.context, OPERATOR, payment_id);
    expect(await organization()).toMatchObject({ credit_micros: 25 * DOLLAR, tier: 1 });
    await expect(confirmManualPayment(books.context, OPERATOR, payment_id)).rejects.toThrow(
      expect.objectContaining({ code: 'payment_settled' }),
    );
    expect((await organization()).credit_micros).toBe(25 * DOLLAR);
    expect(await listPendingPayments(books.context, OPERATOR)).toEqual([]);
  });

  test('that the operator entered are settled, whatever id the entry has', async () => {
    const { context, organization_id } = books;
    const entry = { organization_id, amount_micros: 5 * DOLLAR, entry_id: 'entry_1' };
    await creditByHand(context, OPERATOR, entry);
    const entered = await context.store.payments.findExternalPayment('manual', entry.entry_id);
    await expect(confirmManualPayment(context, OPERATOR, entered?.id ?? '')).rejects.toMatchObject({
      code: 'payment_settled',
    });
  });

  test('call the provider outside of any transaction, so that its answer may take long', async () => {
    const { store } = books.context;
    const slow: PaymentProvider = {
      ...manualProvider,
      createCheckout: async (order) => {
        // Inside a transaction, both would be refused.
        await store.transaction(({ accounts }) =>
          accounts.renameOrganization(order.organization_id, 'Beside'),
        );
        await new Promise<void>((resolve) => setTimeout(resolve));
        return manualProvider.createCheckout(order);
      },
    };
    const { payment_id } = await topUp(OPERATOR, 5 * DOLLAR, slow);
    expect(await listPendingPayments(books.context, OPERATOR)).toMatchObject([{ id: payment_id }]);
    expect((await organization()).name).toBe('Beside');
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
  await expect(creditByHand(books.context, owner, given)).rejects.toThrow(denied);
  await expect(refundByHand(books.context, owner, given)).rejects.toThrow(denied);
  await expect(confirmManualPayment(books.context, owner, 'pay_1')).rejects.toThrow(denied);
  await expect(listPendingPayments(books.context, owner)).rejects.toThrow(denied);
  await expect(
    setTierSettings(books.context, owner, given.organization_id, { minimum_tier: 5 }),
  ).rejects.toThrow(denied);
});

test('payment, ledger and tier are one commit: when the tier cannot be written, nothing is', async () => {
  books.db.$client.run(
    "CREATE TRIGGER broken BEFORE INSERT ON tier_changes BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  await expect(credit(25 * DOLLAR)).rejects.toThrow();
  expect(await organization()).toMatchObject({
    credit_micros: 0,
    paid_micros: 0,
    tier: 0,
    first_paid_at_ms: null,
  });
  expect(books.db.select().from(payments).all()).toEqual([]);
});

test('the history shows every movement with the balance after it, and every tier change, newest first', async () => {
  await credit(25 * DOLLAR);
  books.clock.advance(1_000);
  await spend(books, 150);
  books.clock.advance(1_000);
  await refund(25 * DOLLAR);
  const given = { organization_id: books.organization_id, limit: 10 };
  const context = { ...books.context, reader: new SqliteMovementReader(books.db) };
  const history = await creditHistory(context, OPERATOR, given);
  expect(history).toMatchObject([
    { kind: 'tier_change', from_tier: 1, to_tier: 0, reason: 'refund' },
    { kind: 'refund', amount_micros: -25 * DOLLAR, balance_micros: -150 },
    { kind: 'charge', amount_micros: -150, balance_micros: 25 * DOLLAR - 150, project_id: books.project_id },
    { kind: 'tier_change', from_tier: 0, to_tier: 1, reason: 'top_up' },
    { kind: 'top_up', amount_micros: 25 * DOLLAR, balance_micros: 25 * DOLLAR },
  ]);
  expect(await creditHistory(context, OPERATOR, { ...given, limit: 2 })).toEqual(history.slice(0, 2));
  const { user } = await signUp(books.context, { email: 'stranger@example.com', name: 'Stranger' });
  await expect(creditHistory(context, { kind: 'user', user_id: user.id }, given)).rejects.toThrow(
    expect.objectContaining({ code: 'not_found' }),
  );
});

test('a payment row tells who started it, and when it was settled', async () => {
  const owner = await memberWithRole('owner');
  const { payment_id } = await topUp(owner, 5 * DOLLAR);
  const started_at_ms = books.clock.now_ms();
  books.clock.advance(5_000);
  await confirmManualPayment(books.context, OPERATOR, payment_id);
  expect(books.db.select().from(payments).where(eq(payments.id, payment_id)).get()).toMatchObject({
    created_by_user_id: owner.kind === 'user' ? owner.user_id : '',
    created_at_ms: started_at_ms,
    settled_at_ms: started_at_ms + 5_000,
    status: 'completed',
  });
});
