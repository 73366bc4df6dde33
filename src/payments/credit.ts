import { and, asc, eq, sql } from 'drizzle-orm';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { payments } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import type { Organization } from '../accounts/account-records.ts';
import { type Actor, userIdOf } from '../accounts/actor.ts';
import type { AccountContext } from '../accounts/context.ts';
import { AccountError } from '../accounts/errors.ts';
import { requireOperator } from '../accounts/permissions.ts';
import { readOrganization, recalculateTier, requirePermission } from '../accounts/synchronous.ts';
import { TIERS, TOP_UP_MIN_MICROS, tierInForce } from '../accounts/tiers.ts';
import type { Clock } from '../clock.ts';
import type { Identifiers } from '../identifiers.ts';
import { Ledger } from '../ledger/ledger.ts';
import { formatDollars, MICROS_PER_DOLLAR } from '../money.ts';
import type { Store } from '../store.ts';
import { MANUAL_PROVIDER_NAME } from './manual.ts';
import type { Checkout, PaymentProvider } from './provider.ts';

/** What the credit services work with. */
export interface CreditContext extends AccountContext {
  readonly db: Db;
  readonly ledger: Pick<Ledger, 'topUp' | 'refund'>;
}

/** The context of one database. */
export function creditContext(
  db: Db,
  clock: Clock,
  identifiers: Identifiers,
  store: Store = new SqliteStore(db),
): CreditContext {
  return { db, store, clock, identifiers, ledger: new Ledger(db) };
}

export type Payment = typeof payments.$inferSelect;

const CENT_MICROS = MICROS_PER_DOLLAR / 100;

/**
 * What one top-up of the organization may be now, in micro-dollars (spec, "Single top-up range"): the range of the tier
 * in force, with the dedicated most where the operator has set one.
 */
export function topUpRange(
  organization: Organization,
  now_ms: number,
): { readonly least: number; readonly most: number } {
  const { top_up_max_micros } = organization;
  const most = top_up_max_micros ?? TIERS[tierInForce(organization, now_ms)]?.top_up_max_micros ?? 0;
  return { least: TOP_UP_MIN_MICROS, most };
}

/** Throws `invalid_amount` for what is not a whole number of micro-dollars above zero. */
export function requireAmount(amount_micros: number): void {
  if (!Number.isSafeInteger(amount_micros) || amount_micros <= 0) throw new AccountError('invalid_amount');
}

function requireInRange({ clock }: CreditContext, organization: Organization, amount_micros: number): void {
  const { least, most } = topUpRange(organization, clock.now_ms());
  if (amount_micros < least || amount_micros > most) {
    throw new AccountError(
      'top_up_out_of_range',
      `One top-up of this organization can be from $${formatDollars(least)} to $${formatDollars(most)}.`,
    );
  }
}

function requireWholeCents(amount_micros: number): void {
  if (amount_micros % CENT_MICROS !== 0) {
    throw new AccountError('invalid_amount', 'A top-up must be a whole number of cents.');
  }
}

/** A payment that waits for its confirmation, and how to pay it. */
export interface StartedTopUp {
  readonly payment_id: string;
  readonly checkout: Checkout;
}

/**
 * Opens a checkout for a top-up within the tier's range (owners, admins and billing members). Credit comes when the
 * provider, or for `manual` the operator, confirms the payment. Throws `not_found`, `permission_denied`,
 * `top_up_out_of_range`, `invalid_amount`, `payment_provider_failed`.
 */
export async function startTopUp(
  context: CreditContext,
  actor: Actor,
  provider: PaymentProvider,
  given: { readonly organization_id: string; readonly amount_micros: number },
): Promise<StartedTopUp> {
  const { db, clock, identifiers } = context;
  const { organization_id, amount_micros } = given;
  requirePermission(db, actor, organization_id, 'top_up');
  requireAmount(amount_micros);
  requireInRange(context, readOrganization(context, organization_id), amount_micros);
  requireWholeCents(amount_micros);
  const payment_id = identifiers.id('payment');
  const checkout = await provider
    .createCheckout({ payment_id, organization_id, amount_micros })
    .catch((cause: unknown) => {
      throw new AccountError('payment_provider_failed', undefined, { cause });
    });
  db.insert(payments)
    .values({
      id: payment_id,
      organization_id,
      provider: provider.name,
      external_id: checkout.external_id,
      kind: 'top_up',
      amount_micros,
      status: 'pending',
      created_by_user_id: userIdOf(actor),
      created_at_ms: clock.now_ms(),
    })
    // The customer may have paid already: then the provider's event has brought the row here.
    .onConflictDoNothing()
    .run();
  return { payment_id, checkout };
}

/**
 * Enters a payment that the operator has received by hand: it counts as paid and moves the tier. The range of one
 * top-up binds only with `within_range`. Throws `permission_denied`, `not_found`, `invalid_amount`,
 * `top_up_out_of_range`.
 */
export function creditByHand(
  context: CreditContext,
  actor: Actor,
  given: {
    readonly organization_id: string;
    readonly amount_micros: number;
    readonly within_range?: boolean;
  },
): Organization {
  requireOperator(actor);
  const { organization_id, amount_micros } = given;
  requireAmount(amount_micros);
  return transact(context.db, () => {
    const organization = readOrganization(context, organization_id);
    if (given.within_range === true) requireInRange(context, organization, amount_micros);
    completePayment(context, insertByHand(context, { organization_id, amount_micros, kind: 'top_up' }));
    return readOrganization(context, organization_id);
  });
}

/**
 * Takes back credit that was paid by hand, after the operator has returned the money; the balance may fall below zero,
 * and the tier is set anew. Payments through another provider are refunded there, and its webhook does the same. Throws
 * `permission_denied`, `not_found`, `invalid_amount`, `refund_exceeds_paid`.
 */
export function refundByHand(
  context: CreditContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly amount_micros: number },
): Organization {
  requireOperator(actor);
  requireAmount(given.amount_micros);
  return transact(context.db, () => {
    readOrganization(context, given.organization_id);
    const left = paidByHand(context, given.organization_id);
    if (given.amount_micros > left) {
      throw new AccountError(
        'refund_exceeds_paid',
        `Only $${formatDollars(left)} of the payments made by hand is left to refund.`,
      );
    }
    completePayment(context, insertByHand(context, { ...given, kind: 'refund' }));
    return readOrganization(context, given.organization_id);
  });
}

/** Payments and refunds that are not settled yet, oldest first: of one organization or of all (operator only). */
export function listPendingPayments(
  context: CreditContext,
  actor: Actor,
  organization_id?: string,
): Payment[] {
  requireOperator(actor);
  return context.db
    .select()
    .from(payments)
    .where(
      and(
        eq(payments.status, 'pending'),
        organization_id === undefined ? undefined : eq(payments.organization_id, organization_id),
      ),
    )
    .orderBy(asc(payments.created_at_ms), asc(payments.id))
    .all();
}

/**
 * The operator's word that the money of a pending manual payment has arrived. Throws `permission_denied`, `not_found`,
 * `payment_settled`.
 */
export function confirmManualPayment(context: CreditContext, actor: Actor, payment_id: string): Payment {
  requireOperator(actor);
  return transact(context.db, () => {
    const payment = findPayment(context, MANUAL_PROVIDER_NAME, payment_id);
    if (payment === undefined) throw new AccountError('not_found', 'There is no such manual payment.');
    if (payment.status !== 'pending') throw new AccountError('payment_settled');
    return completePayment(context, payment);
  });
}

/** Settles a payment: its row, the ledger and the tier together. To be called inside a transaction. */
export function completePayment(context: CreditContext, payment: Payment): Payment {
  const { db, clock, ledger } = context;
  const { id, organization_id, amount_micros, kind } = payment;
  const at_ms = clock.now_ms();
  db.update(payments)
    .set({ status: 'completed', amount_micros, settled_at_ms: at_ms })
    .where(eq(payments.id, id))
    .run();
  const movement = { organization_id, amount_micros, payment_id: id, at_ms };
  if (kind === 'top_up') ledger.topUp(movement);
  else ledger.refund(movement);
  recalculateTier(db, organization_id, kind, at_ms);
  return { ...payment, status: 'completed', settled_at_ms: at_ms };
}

/** The payment or refund that a provider knows under this id. */
export function findPayment(
  context: CreditContext,
  provider: string,
  external_id: string,
): Payment | undefined {
  return context.db
    .select()
    .from(payments)
    .where(and(eq(payments.provider, provider), eq(payments.external_id, external_id)))
    .get();
}

function insertByHand(
  context: CreditContext,
  given: Pick<Payment, 'organization_id' | 'amount_micros' | 'kind'>,
): Payment {
  const { db, clock, identifiers } = context;
  const id = identifiers.id('payment');
  return db
    .insert(payments)
    .values({
      ...given,
      id,
      provider: MANUAL_PROVIDER_NAME,
      external_id: id,
      status: 'pending',
      created_at_ms: clock.now_ms(),
    })
    .returning()
    .get();
}

/** What the organization has paid by hand, less what was refunded of it. */
function paidByHand(context: CreditContext, organization_id: string): number {
  const row = context.db
    .select({
      left: sql<number>`coalesce(sum(CASE ${payments.kind} WHEN 'top_up' THEN ${payments.amount_micros} ELSE -${payments.amount_micros} END), 0)`,
    })
    .from(payments)
    .where(
      and(
        eq(payments.organization_id, organization_id),
        eq(payments.provider, MANUAL_PROVIDER_NAME),
        eq(payments.status, 'completed'),
      ),
    )
    .get();
  return row?.left ?? 0;
}
