import { and, asc, desc, eq, inArray, isNotNull, min, or, type SQL, sql } from 'drizzle-orm';
import type {
  EventDecision,
  EventSubject,
  KeptEvent,
  KeptOutcome,
  Payment,
  PaymentRecords,
} from '../../src/payments/payment-records.ts';
import type { Db } from './connection.ts';
import { paymentEvents, payments } from './schema.ts';
import type { Access } from './transactions.ts';

/** Payments and the events of payment providers in SQLite. */
export class SqlitePaymentRecords implements PaymentRecords {
  readonly #db: Db;
  readonly #access: Access;

  constructor(db: Db, access: Access) {
    this.#db = db;
    this.#access = access;
  }

  findPayment(payment_id: string): Promise<Payment | undefined> {
    return this.#access.read(() => this.#db.select().from(payments).where(eq(payments.id, payment_id)).get());
  }

  findExternalPayment(provider: string, external_id: string): Promise<Payment | undefined> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(payments)
        .where(and(eq(payments.provider, provider), eq(payments.external_id, external_id)))
        .get(),
    );
  }

  pendingPayments(organization_id?: string): Promise<Payment[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(payments)
        .where(
          and(
            eq(payments.status, 'pending'),
            organization_id === undefined ? undefined : eq(payments.organization_id, organization_id),
          ),
        )
        .orderBy(asc(payments.created_at_ms), asc(payments.id))
        .all(),
    );
  }

  returnsOf(payment_id: string): Promise<Payment[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(payments)
        .where(eq(payments.refunds_payment_id, payment_id))
        .orderBy(asc(payments.created_at_ms), asc(payments.id))
        .all(),
    );
  }

  returnsTo(organization_id: string, limit: number): Promise<Payment[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(payments)
        .where(
          and(
            eq(payments.organization_id, organization_id),
            or(eq(payments.kind, 'refund'), isNotNull(payments.refunds_payment_id)),
          ),
        )
        .orderBy(desc(payments.created_at_ms), desc(payments.id))
        .limit(limit)
        .all(),
    );
  }

  firstCredit_ms(organization_id: string): Promise<number | undefined> {
    return this.#access.read(
      () =>
        this.#db
          .select({ settled_at_ms: min(payments.settled_at_ms) })
          .from(payments)
          .where(
            and(
              eq(payments.organization_id, organization_id),
              eq(payments.kind, 'top_up'),
              eq(payments.status, 'completed'),
            ),
          )
          .get()?.settled_at_ms ?? undefined,
    );
  }

  paidThrough(provider: string, organization_id: string): Promise<number> {
    return this.#access.read(() => {
      const row = this.#db
        .select({
          paid_micros: sql<number>`coalesce(sum(CASE ${payments.kind} WHEN 'top_up' THEN ${payments.amount_micros}
            ELSE -${payments.amount_micros} END), 0)`,
        })
        .from(payments)
        .where(
          and(
            eq(payments.organization_id, organization_id),
            eq(payments.provider, provider),
            eq(payments.status, 'completed'),
          ),
        )
        .get();
      return row?.paid_micros ?? 0;
    });
  }

  insertPayment(payment: Payment): Promise<void> {
    return this.#access.write(() => this.#db.insert(payments).values(payment).run());
  }

  settlePayment(
    payment_id: string,
    settled: Pick<Payment, 'amount_micros'> & {
      readonly status: 'completed' | 'canceled';
      readonly settled_at_ms: number;
    },
  ): Promise<void> {
    return this.#access.write(() =>
      this.#db.update(payments).set(settled).where(eq(payments.id, payment_id)).run(),
    );
  }

  findEvent(event_id: string, provider?: string): Promise<KeptEvent | undefined> {
    const ofProvider = provider === undefined ? undefined : eq(paymentEvents.provider, provider);
    return this.#access.read(() =>
      this.#db
        .select()
        .from(paymentEvents)
        .where(and(ofProvider, eq(paymentEvents.event_id, event_id)))
        .get(),
    );
  }

  listEvents(limit: number, outcome?: KeptOutcome): Promise<KeptEvent[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(paymentEvents)
        .where(outcome === undefined ? undefined : eq(paymentEvents.outcome, outcome))
        .orderBy(desc(paymentEvents.received_at_ms), desc(paymentEvents.event_id))
        .limit(limit)
        .all(),
    );
  }

  returnEvents(provider: string, payment_external_id: string, outcome: KeptOutcome): Promise<KeptEvent[]> {
    return this.#access.read(() =>
      this.#db
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
        .orderBy(paymentEvents.received_at_ms, paymentEvents.event_id)
        .all(),
    );
  }

  hasEvent(provider: string, subject: EventSubject, outcomes: readonly KeptOutcome[]): Promise<boolean> {
    return this.#access.read(() => {
      const found = this.#db
        .select({ event_id: paymentEvents.event_id })
        .from(paymentEvents)
        .where(and(about(provider, subject), inArray(paymentEvents.outcome, outcomes)))
        .get();
      return found !== undefined;
    });
  }

  keepEvent(event: KeptEvent, replaced: readonly KeptOutcome[]): Promise<void> {
    const { provider: _provider, event_id: _event_id, received_at_ms: _received_at_ms, ...facts } = event;
    return this.#access.write(() =>
      this.#db
        .insert(paymentEvents)
        .values(event)
        .onConflictDoUpdate({
          target: [paymentEvents.provider, paymentEvents.event_id],
          set: facts,
          setWhere: inArray(paymentEvents.outcome, replaced),
        })
        .run(),
    );
  }

  decideEvent(
    { provider, event_id }: Pick<KeptEvent, 'provider' | 'event_id'>,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void> {
    const itself = and(eq(paymentEvents.provider, provider), eq(paymentEvents.event_id, event_id));
    return this.#access.write(() => this.#decide(itself, among, decision));
  }

  decideEventsAbout(
    provider: string,
    subject: EventSubject,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void> {
    return this.#access.write(() => this.#decide(about(provider, subject), among, decision));
  }

  #decide(selected: SQL | undefined, among: readonly KeptOutcome[], decision: EventDecision): void {
    this.#db
      .update(paymentEvents)
      .set({ ...decision, reason: null })
      .where(and(selected, inArray(paymentEvents.outcome, among)))
      .run();
  }
}

function about(provider: string, { kind, external_id, payment_external_id }: EventSubject) {
  return and(
    eq(paymentEvents.provider, provider),
    // The payment comes first, because it has an index.
    eq(paymentEvents.payment_external_id, payment_external_id),
    eq(paymentEvents.external_id, external_id),
    eq(paymentEvents.kind, kind),
  );
}
