import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  inArray,
  isNotNull,
  isNull,
  min,
  ne,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type {
  EventDecision,
  EventSubject,
  KeptEvent,
  KeptOutcome,
  Payment,
  PaymentRecords,
} from '../../src/store/payment-records.ts';
import { paymentEvents, payments } from '../tables.ts';
import { countRows } from './count-rows.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

/** Payments and the events of payment providers. */
export class SqlPaymentRecords implements PaymentRecords {
  constructor(private readonly executor: Executor) {}

  findPayment(payment_id: string): Promise<Payment | undefined> {
    return firstRow(this.executor.select().from(payments).where(eq(payments.id, payment_id)));
  }

  findExternalPayment(provider: string, external_id: string): Promise<Payment | undefined> {
    return firstRow(
      this.executor
        .select()
        .from(payments)
        .where(and(eq(payments.provider, provider), eq(payments.external_id, external_id))),
    );
  }

  async pendingPayments(organization_id?: string, provider?: string): Promise<Payment[]> {
    return await this.executor
      .select()
      .from(payments)
      .where(
        and(
          // Written as in the partial index, so that SQLite uses it.
          sql`${payments.status} = 'pending'`,
          provider === undefined ? undefined : eq(payments.provider, provider),
          organization_id === undefined ? undefined : eq(payments.organization_id, organization_id),
        ),
      )
      .orderBy(asc(payments.created_at_ms), asc(payments.id));
  }

  async returnsOf(payment_id: string): Promise<Payment[]> {
    return await this.executor
      .select()
      .from(payments)
      .where(eq(payments.refunds_payment_id, payment_id))
      .orderBy(asc(payments.created_at_ms), asc(payments.id));
  }

  async returnsTo(organization_id: string, limit: number): Promise<Payment[]> {
    return await this.executor
      .select()
      .from(payments)
      .where(
        and(
          eq(payments.organization_id, organization_id),
          or(eq(payments.kind, 'refund'), isNotNull(payments.refunds_payment_id)),
        ),
      )
      .orderBy(desc(payments.created_at_ms), desc(payments.id))
      .limit(limit);
  }

  async firstCredit_ms(organization_id: string): Promise<number | undefined> {
    const found = await firstRow(
      this.executor
        .select({ settled_at_ms: min(payments.settled_at_ms) })
        .from(payments)
        .where(
          and(
            eq(payments.organization_id, organization_id),
            eq(payments.kind, 'top_up'),
            eq(payments.status, 'completed'),
          ),
        ),
    );
    return found?.settled_at_ms ?? undefined;
  }

  async paidThrough(provider: string, organization_id: string): Promise<number> {
    const paid_micros = sql`CASE ${payments.kind} WHEN 'top_up' THEN ${payments.amount_micros}
      ELSE -${payments.amount_micros} END`;
    const found = await firstRow(
      this.executor
        .select({ paid_micros: sql<number>`coalesce(sum(${paid_micros}), 0)`.mapWith(Number) })
        .from(payments)
        .where(
          and(
            eq(payments.organization_id, organization_id),
            eq(payments.provider, provider),
            eq(payments.status, 'completed'),
          ),
        ),
    );
    return found?.paid_micros ?? 0;
  }

  async insertPayment(payment: Payment): Promise<void> {
    await this.executor.insert(payments).values(payment);
  }

  async settlePayment(
    payment_id: string,
    settled: Pick<Payment, 'amount_micros'> & {
      readonly status: 'completed' | 'canceled';
      readonly settled_at_ms: number;
    },
  ): Promise<void> {
    await this.executor.update(payments).set(settled).where(eq(payments.id, payment_id));
  }

  findEvent(event_id: string, provider?: string): Promise<KeptEvent | undefined> {
    const ofProvider = provider === undefined ? undefined : eq(paymentEvents.provider, provider);
    return firstRow(
      this.executor
        .select()
        .from(paymentEvents)
        .where(and(ofProvider, eq(paymentEvents.event_id, event_id)))
        .orderBy(asc(paymentEvents.provider))
        .limit(1),
    );
  }

  async listEvents(limit: number, outcome?: KeptOutcome): Promise<KeptEvent[]> {
    return await this.executor
      .select()
      .from(paymentEvents)
      .where(outcome === undefined ? undefined : eq(paymentEvents.outcome, outcome))
      .orderBy(desc(paymentEvents.received_at_ms), desc(paymentEvents.event_id))
      .limit(limit);
  }

  async eventsOf(organization_id: string, limit: number): Promise<KeptEvent[]> {
    const newest = [desc(paymentEvents.received_at_ms), desc(paymentEvents.event_id)];
    const own = await this.executor
      .select()
      .from(paymentEvents)
      .where(eq(paymentEvents.organization_id, organization_id))
      .orderBy(...newest)
      .limit(limit);
    // A condition for both would read the events of everybody. SQLite keeps the order of a cross join.
    const of_payments = await this.executor
      .select(getTableColumns(paymentEvents))
      .from(payments)
      .crossJoin(paymentEvents)
      .where(
        and(
          eq(payments.organization_id, organization_id),
          eq(paymentEvents.provider, payments.provider),
          eq(paymentEvents.payment_external_id, payments.external_id),
          or(isNull(paymentEvents.organization_id), ne(paymentEvents.organization_id, organization_id)),
        ),
      )
      .orderBy(...newest)
      .limit(limit);
    return [...own, ...of_payments].sort(byNewest).slice(0, limit);
  }

  countEvents(outcome: KeptOutcome): Promise<number> {
    return countRows(this.executor, paymentEvents, eq(paymentEvents.outcome, outcome));
  }

  async returnEvents(
    provider: string,
    payment_external_id: string,
    outcome: KeptOutcome,
  ): Promise<KeptEvent[]> {
    return await this.executor
      .select()
      .from(paymentEvents)
      .where(
        and(
          eq(paymentEvents.provider, provider),
          eq(paymentEvents.payment_external_id, payment_external_id),
          inArray(paymentEvents.kind, ['refunded', 'refund_reversed']),
          eq(paymentEvents.outcome, outcome),
        ),
      )
      .orderBy(asc(paymentEvents.received_at_ms), asc(paymentEvents.event_id));
  }

  async hasEvent(
    provider: string,
    subject: EventSubject,
    outcomes: readonly KeptOutcome[],
  ): Promise<boolean> {
    const found = await firstRow(
      this.executor
        .select({ event_id: paymentEvents.event_id })
        .from(paymentEvents)
        .where(and(about(provider, subject), inArray(paymentEvents.outcome, outcomes)))
        .limit(1),
    );
    return found !== undefined;
  }

  async keepEvent(event: KeptEvent, replaced: readonly KeptOutcome[]): Promise<void> {
    const { provider: _provider, event_id: _event_id, received_at_ms: _received_at_ms, ...facts } = event;
    await this.executor
      .insert(paymentEvents)
      .values(event)
      .onConflictDoUpdate({
        target: [paymentEvents.provider, paymentEvents.event_id],
        set: facts,
        setWhere: inArray(paymentEvents.outcome, replaced),
      });
  }

  decideEvent(
    { provider, event_id }: Pick<KeptEvent, 'provider' | 'event_id'>,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void> {
    const itself = and(eq(paymentEvents.provider, provider), eq(paymentEvents.event_id, event_id));
    return this.#decide(itself, among, decision);
  }

  decideEventsAbout(
    provider: string,
    subject: EventSubject,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void> {
    return this.#decide(about(provider, subject), among, decision);
  }

  async #decide(
    selected: SQL | undefined,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void> {
    await this.executor
      .update(paymentEvents)
      .set({ ...decision, reason: null })
      .where(and(selected, inArray(paymentEvents.outcome, among)));
  }
}

function about(provider: string, { kind, external_id, payment_external_id }: EventSubject) {
  return and(
    eq(paymentEvents.provider, provider),
    eq(paymentEvents.payment_external_id, payment_external_id),
    eq(paymentEvents.external_id, external_id),
    eq(paymentEvents.kind, kind),
  );
}

function byNewest(left: KeptEvent, right: KeptEvent): number {
  return right.received_at_ms - left.received_at_ms || (left.event_id < right.event_id ? 1 : -1);
}
