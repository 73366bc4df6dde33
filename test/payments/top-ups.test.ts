import { afterEach, beforeEach, expect, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { applyPaymentReport } from '../../src/payments/apply-event.ts';
import { billing } from '../../src/payments/billing.ts';
import { cancelTopUp, confirmManualPayment, startTopUp } from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import type { PaymentEvent, PaymentProvider } from '../../src/payments/provider.ts';
import { type Books, expectCleanAudit, openBooks } from './support.ts';

const AMOUNT_MICROS = 10_000_000;

const elsewhere: PaymentProvider = {
  ...manualProvider,
  name: 'elsewhere',
  createCheckout: ({ payment_id }) =>
    Promise.resolve({ external_id: `ext_${payment_id}`, url: 'https://pay.example/1' }),
};

let books: Books;
beforeEach(async () => {
  books = await openBooks();
});
afterEach(() => {
  expectCleanAudit(books);
  books.remove();
});

const start = async (provider = manualProvider, organization_id = books.organization_id) =>
  (await startTopUp(books.context, OPERATOR, provider, { organization_id, amount_micros: AMOUNT_MICROS }))
    .payment_id;

const cancel = (payment_id: string, organization_id = books.organization_id) =>
  cancelTopUp(books.context, OPERATOR, { organization_id, payment_id });

const facts = () => billing(books.context, OPERATOR, manualProvider, books.organization_id);

function report(event: PaymentEvent) {
  const event_id = `evt_${JSON.stringify(event)}`;
  const given = { event_id, type: event.kind, occurred_at_ms: null, event };
  return applyPaymentReport(books.context, elsewhere.name, given);
}

test('at most 20 top-ups of an organization wait for payment, however they are started', async () => {
  const started = await Promise.allSettled(
    Array.from({ length: 30 }, (_, index) => start(index % 2 === 0 ? manualProvider : elsewhere)),
  );
  const refusals = started.filter(({ status }) => status === 'rejected');
  expect(refusals).toHaveLength(10);
  for (const refusal of refusals)
    expect(refusal).toMatchObject({ reason: { code: 'too_many_pending_top_ups' } });
  const { pending } = await facts();
  expect(pending).toHaveLength(20);
  const other = await createOrganization(books.context, OPERATOR, { name: 'Other' });
  await start(manualProvider, other.id);
  await cancel(pending[0]?.id ?? '');
  await start();
  await expect(start()).rejects.toMatchObject({ code: 'too_many_pending_top_ups' });
});

test('no checkout is opened for a top-up beyond the bound', async () => {
  for (let count = 0; count < 20; count++) await start();
  let checkouts = 0;
  const counting: PaymentProvider = {
    ...elsewhere,
    createCheckout: (order) => {
      checkouts++;
      return elsewhere.createCheckout(order);
    },
  };
  await expect(start(counting)).rejects.toMatchObject({ code: 'too_many_pending_top_ups' });
  expect(checkouts).toBe(0);
});

test('a canceled top-up is settled: neither confirmed nor canceled again', async () => {
  const payment_id = await start();
  await cancel(payment_id);
  expect((await facts()).pending).toEqual([]);
  const settled = { code: 'payment_settled' };
  await expect(cancel(payment_id)).rejects.toMatchObject(settled);
  await expect(confirmManualPayment(books.context, OPERATOR, payment_id)).rejects.toMatchObject(settled);
  expect((await facts()).credit_micros).toBe(0);
});

test("a confirmed top-up and another organization's are not canceled", async () => {
  const payment_id = await start();
  const other = await createOrganization(books.context, OPERATOR, { name: 'Other' });
  await expect(cancel(payment_id, other.id)).rejects.toMatchObject({ code: 'not_found' });
  await expect(cancel('pay_unknown')).rejects.toMatchObject({ code: 'not_found' });
  await confirmManualPayment(books.context, OPERATOR, payment_id);
  await expect(cancel(payment_id)).rejects.toMatchObject({ code: 'payment_settled' });
  expect((await facts()).credit_micros).toBe(AMOUNT_MICROS);
});

test('a canceled top-up whose checkout is paid nevertheless becomes credit, once', async () => {
  const payment_id = await start(elsewhere);
  await cancel(payment_id);
  const paid = {
    kind: 'completed',
    external_id: `ext_${payment_id}`,
    amount_micros: AMOUNT_MICROS,
    order: null,
    sold: 'credit',
  } as const;
  expect((await report(paid)).outcome).toBe('applied');
  expect((await report({ ...paid, sold: 'unknown' })).outcome).toBe('known');
  expect(await facts()).toMatchObject({ credit_micros: AMOUNT_MICROS, pending: [] });
});

test('money that returns from a refund is nothing that a member can cancel', async () => {
  const external_id = `ext_${await start(elsewhere)}`;
  const amount_micros = AMOUNT_MICROS;
  await report({
    kind: 'refund_reversed',
    external_id: 'back_1',
    payment_external_id: external_id,
    amount_micros,
  });
  const reversal = (await facts()).pending.find((payment) => payment.external_id === 'back_1');
  expect(reversal?.kind).toBe('top_up');
  await expect(cancel(reversal?.id ?? '')).rejects.toMatchObject({ code: 'not_found' });
});
