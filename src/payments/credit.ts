import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator, requirePermission } from '../access/permissions.ts';
import { readOrganization } from '../accounts/organizations.ts';
import { recalculateTier } from '../accounts/tier-changes.ts';
import { inTransaction, type Transaction } from '../accounts/transaction.ts';
import { raiseAlert } from '../alerts/raise.ts';
import type { AuditLogAction } from '../audit-log/actions.ts';
import { requireChangesLeft } from '../audit-log/changes-left.ts';
import { recordAct } from '../audit-log/record.ts';
import { CENT_MICROS, formatDollars } from '../contract/money.ts';
import { TIERS, TOP_UP_MIN_MICROS, tierInForce } from '../contract/tiers.ts';
import type { Organization } from '../store/account-records.ts';
import type { Payment } from '../store/payment-records.ts';
import type { Records } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { MANUAL_PROVIDER_NAME } from './manual.ts';
import type { Checkout, PaymentProvider } from './provider.ts';

/**
 * Returns the present range of one top-up, in micro-dollars (contract: the single top-up range). It is that
 * of the tier in force, with the operator's maximum where there is one.
 */
export function topUpRange(
  organization: Organization,
  now_ms: number,
): { readonly least: number; readonly most: number } {
  const { top_up_max_micros } = organization;
  const most = top_up_max_micros ?? TIERS[tierInForce(organization, now_ms)]?.top_up_max_micros ?? 0;
  return { least: TOP_UP_MIN_MICROS, most };
}

/** Throws `invalid_amount` unless the amount is a whole number of micro-dollars above zero. */
export function requireAmount(amount_micros: number): void {
  if (!Number.isSafeInteger(amount_micros) || amount_micros <= 0) throw new AccountError('invalid_amount');
}

function requireInRange(
  { clock }: { readonly clock: Clock },
  organization: Organization,
  amount_micros: number,
): void {
  const { least, most } = topUpRange(organization, clock.now_ms());
  if (amount_micros < least || amount_micros > most) {
    throw new AccountError(
      'top_up_out_of_range',
      `One top-up of this organization can be from $${formatDollars(least)} to $${formatDollars(most)}.`,
    );
  }
}

/** Returns true if a person chose to pay this. The reversal of a refund is a top-up too, but nobody chose it. */
function isTopUp({ kind, refunds_payment_id }: Payment): boolean {
  return kind === 'top_up' && refunds_payment_id === null;
}

/** The most unpaid top-ups of an organization at once. */
const PENDING_TOP_UPS_MAX = 20;

/** Rejects with `too_many_pending_top_ups` when the organization has the most unpaid top-ups. */
async function requireFewPending(
  { payments }: Pick<Records, 'payments'>,
  organization_id: string,
): Promise<void> {
  const pending = await payments.pendingPayments(organization_id);
  if (pending.filter(isTopUp).length >= PENDING_TOP_UPS_MAX) {
    throw new AccountError('too_many_pending_top_ups');
  }
}

function requireWholeCents(amount_micros: number): void {
  if (amount_micros % CENT_MICROS !== 0) {
    throw new AccountError('invalid_amount', 'A top-up must be a whole number of cents.');
  }
}

/** A payment that waits for its confirmation, and its checkout. */
export interface StartedTopUp {
  readonly payment_id: string;
  readonly checkout: Checkout;
}

/**
 * Opens a checkout for a top-up within the tier's range (owners, admins and billing members), and stores a
 * pending payment. Credit is added when the provider, or for `manual` the operator, confirms the payment. The
 * provider is called outside of any transaction. Rejects with `not_found`, `permission_denied`,
 * `top_up_out_of_range`, `invalid_amount`, `too_many_pending_top_ups`, `too_many_changes`,
 * `payment_provider_failed`.
 */
export async function startTopUp(
  context: AccountContext,
  actor: Actor,
  provider: PaymentProvider,
  given: { readonly organization_id: string; readonly amount_micros: number },
): Promise<StartedTopUp> {
  const { store, clock, identifiers } = context;
  const { organization_id, amount_micros } = given;
  await requirePermission(store, actor, organization_id, 'top_up');
  requireAmount(amount_micros);
  requireInRange(context, await readOrganization(store, organization_id), amount_micros);
  requireWholeCents(amount_micros);
  await requireFewPending(store, organization_id);
  const act = { action: 'top_up.start', organization_id } as const;
  await requireChangesLeft(store, actor, { ...act, now_ms: clock.now_ms() });
  const payment_id = identifiers.id('payment');
  const checkout = await provider
    .createCheckout({ payment_id, organization_id, amount_micros })
    .catch((cause: unknown) => {
      throw new AccountError('payment_provider_failed', undefined, { cause });
    });
  const { external_id } = checkout;
  await store.transaction(async (records) => {
    const { payments } = records;
    // Other top-ups may have started during the call to the provider.
    await requireFewPending(records, organization_id);
    await recordAct(records, context, actor, {
      ...act,
      object_id: payment_id,
      detail: { amount_micros, provider: provider.name },
    });
    // The customer may have paid already; then the provider's event has entered the payment.
    const known =
      (await payments.findPayment(payment_id)) ??
      (await payments.findExternalPayment(provider.name, external_id));
    if (known !== undefined) return;
    await payments.insertPayment({
      ...PENDING,
      id: payment_id,
      organization_id,
      provider: provider.name,
      external_id,
      kind: 'top_up',
      amount_micros,
      created_by_user_id: actor.user_id,
      created_at_ms: clock.now_ms(),
    });
  });
  return { payment_id, checkout };
}

/**
 * Cancels a pending top-up (owners, admins and billing members). If its checkout is paid nevertheless, that
 * still becomes credit. Rejects with `not_found`, `permission_denied`, `payment_settled`.
 */
export async function cancelTopUp(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly payment_id: string },
): Promise<void> {
  const { organization_id, payment_id } = given;
  await context.store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'top_up');
    const payment = await records.payments.findPayment(payment_id);
    if (payment?.organization_id !== organization_id || !isTopUp(payment)) {
      throw new AccountError('not_found', 'There is no such top-up.');
    }
    if (payment.status !== 'pending') throw new AccountError('payment_settled');
    const { amount_micros, provider } = payment;
    await records.payments.settlePayment(payment_id, {
      status: 'canceled',
      amount_micros,
      settled_at_ms: context.clock.now_ms(),
    });
    await recordAct(records, context, actor, {
      action: 'top_up.cancel',
      organization_id,
      object_id: payment_id,
      detail: { amount_micros, provider },
    });
  });
}

/** The initial values of a payment. */
export const PENDING = {
  status: 'pending',
  refunds_payment_id: null,
  created_by_user_id: null,
  settled_at_ms: null,
} as const satisfies Partial<Payment>;

/** A payment that the operator received, or a refund that the operator paid. */
interface HandledByHand {
  readonly organization_id: string;
  readonly amount_micros: number;
  /**
   * The id of the entry; a repeat with the same id is entered once. Without one, each call makes a new entry.
   */
  readonly entry_id?: string;
}

/**
 * Enters a payment that the operator has received by hand: it counts as paid and raises the tier.
 * `within_range` applies the range of one top-up. Resolves with the organization after it. Rejects with
 * `permission_denied`, `not_found`, `invalid_amount`, `top_up_out_of_range`, `entry_exists`.
 */
export async function creditByHand(
  context: AccountContext,
  actor: Actor,
  given: HandledByHand & { readonly within_range?: boolean },
): Promise<Organization> {
  requireOperator(actor);
  return await inTransaction(context, (transaction) => enterCreditByHand(transaction, actor, given));
}

/**
 * Does the same inside a transaction of the caller, for the operator only. Rejects with `not_found`,
 * `invalid_amount`, `top_up_out_of_range`, `entry_exists`.
 */
export async function enterCreditByHand(
  transaction: Transaction,
  actor: Actor,
  given: HandledByHand & { readonly within_range?: boolean },
): Promise<Organization> {
  const { organization_id, amount_micros } = given;
  requireAmount(amount_micros);
  const organization = await readOrganization(transaction.records, organization_id);
  if (await isEntered(transaction.records, given, 'top_up')) return organization;
  if (given.within_range === true) requireInRange(transaction, organization, amount_micros);
  // Beyond this, balances would be rounded when they are read.
  if (!Number.isSafeInteger(organization.paid_micros + amount_micros)) {
    throw new AccountError('invalid_amount', 'With that, more would be paid than can be counted.');
  }
  await settleByHand(transaction, actor, given, 'top_up');
  return await readOrganization(transaction.records, organization_id);
}

/**
 * Takes back credit that was paid by hand, after the operator has returned the money. The balance may fall
 * below zero, and the tier is recalculated. Payments through another provider are refunded there, and its
 * webhook does this. Resolves with the organization after it. Rejects with `permission_denied`, `not_found`,
 * `invalid_amount`, `refund_exceeds_paid`, `entry_exists`.
 */
export async function refundByHand(
  context: AccountContext,
  actor: Actor,
  given: HandledByHand,
): Promise<Organization> {
  requireOperator(actor);
  requireAmount(given.amount_micros);
  const { organization_id, amount_micros } = given;
  return await inTransaction(context, async (transaction) => {
    const { records } = transaction;
    const organization = await readOrganization(records, organization_id);
    if (await isEntered(records, given, 'refund')) return organization;
    const left = await records.payments.paidThrough(MANUAL_PROVIDER_NAME, organization_id);
    if (amount_micros > left) {
      throw new AccountError(
        'refund_exceeds_paid',
        `Only $${formatDollars(left)} of the payments made by hand is left to refund.`,
      );
    }
    await settleByHand(transaction, actor, given, 'refund');
    return await readOrganization(records, organization_id);
  });
}

/**
 * Returns the unsettled payments and refunds, oldest first, of one organization, one provider or of all (operator only).
 * Rejects with `permission_denied`.
 */
export async function listPendingPayments(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  {
    organization_id,
    provider,
  }: { readonly organization_id?: string | undefined; readonly provider?: string } = {},
): Promise<Payment[]> {
  requireOperator(actor);
  return await store.payments.pendingPayments(organization_id, provider);
}

/**
 * Confirms that the money of a pending manual payment has arrived, which adds the credit (operator only).
 * Resolves with the settled payment. Rejects with `permission_denied`, `not_found`, `payment_settled`.
 */
export async function confirmManualPayment(
  context: AccountContext,
  actor: Actor,
  payment_id: string,
): Promise<Payment> {
  requireOperator(actor);
  return await inTransaction(context, async (transaction) => {
    const payment = await transaction.records.payments.findPayment(payment_id);
    if (payment?.provider !== MANUAL_PROVIDER_NAME)
      throw new AccountError('not_found', 'There is no such manual payment.');
    if (payment.status !== 'pending') throw new AccountError('payment_settled');
    await recordAct(transaction.records, context, actor, {
      action: 'top_up.confirm',
      organization_id: payment.organization_id,
      object_id: payment.id,
      detail: { amount_micros: payment.amount_micros },
    });
    return await completePayment(transaction, payment);
  });
}

/**
 * Settles a payment: its row, the ledger, the tier and their alerts together. The reversal of a refund is no new
 * payment: nobody is told of one, and the days count from the payment itself. Resolves with the settled payment.
 */
export async function completePayment({ records, clock }: Transaction, payment: Payment): Promise<Payment> {
  const { id, organization_id, amount_micros, kind } = payment;
  const at_ms = clock.now_ms();
  const settled = { status: 'completed', amount_micros, settled_at_ms: at_ms } as const;
  await records.payments.settlePayment(id, settled);
  const movement = { organization_id, amount_micros, payment_id: id, at_ms };
  if (kind === 'top_up') {
    await records.ledger.topUp({ ...movement, paid_at_ms: await paidAt_ms(records, payment, at_ms) });
    const alert = { kind: 'payment_credited', organization_id, subject_id: id, amount_micros } as const;
    if (isTopUp(payment)) await raiseAlert(records, alert, at_ms);
  } else {
    await records.ledger.refund(movement);
  }
  await recalculateTier(records, organization_id, kind, at_ms);
  return { ...payment, ...settled };
}

/** Returns the time of the payment of which a reversal brings a refund back; for any other, now. */
async function paidAt_ms(
  { payments }: Pick<Records, 'payments'>,
  { refunds_payment_id }: Payment,
  now_ms: number,
): Promise<number> {
  const paid = refunds_payment_id === null ? undefined : await payments.findPayment(refunds_payment_id);
  return paid?.settled_at_ms ?? now_ms;
}

/**
 * Returns true if this entry is already in the books, from a request whose answer was lost. Rejects with
 * `entry_exists` when another entry has its id.
 */
async function isEntered(
  { payments }: Pick<Records, 'payments'>,
  { entry_id, organization_id, amount_micros }: HandledByHand,
  kind: Payment['kind'],
): Promise<boolean> {
  if (entry_id === undefined) return false;
  const found = await payments.findExternalPayment(MANUAL_PROVIDER_NAME, entry_id);
  if (found === undefined) return false;
  const is_same =
    found.organization_id === organization_id &&
    found.kind === kind &&
    found.amount_micros === amount_micros &&
    found.status === 'completed';
  if (!is_same) throw new AccountError('entry_exists');
  return true;
}

/** Enters a payment or refund by hand, and settles it. */
async function settleByHand(
  transaction: Transaction,
  actor: Actor,
  { organization_id, amount_micros, entry_id }: HandledByHand,
  kind: Payment['kind'],
): Promise<void> {
  const { records, clock, identifiers } = transaction;
  const id = identifiers.id('payment');
  const payment: Payment = {
    ...PENDING,
    id,
    organization_id,
    provider: MANUAL_PROVIDER_NAME,
    external_id: entry_id ?? id,
    kind,
    amount_micros,
    created_at_ms: clock.now_ms(),
  };
  await records.payments.insertPayment(payment);
  await completePayment(transaction, payment);
  const action: AuditLogAction = kind === 'refund' ? 'credit.refund' : 'credit.enter';
  await recordAct(records, { clock }, actor, {
    action,
    organization_id,
    object_id: id,
    detail: { amount_micros },
  });
}
