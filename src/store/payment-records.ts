export const PAYMENT_KINDS = ['top_up', 'refund'] as const;
export type PaymentKind = (typeof PAYMENT_KINDS)[number];

export const PAYMENT_STATUSES = ['pending', 'completed', 'canceled'] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** A payment or a refund, one row for each that a provider has. Amounts are micro-dollars, above 0. */
export interface Payment {
  readonly id: string;
  readonly organization_id: string;
  readonly provider: string;
  /** The provider's own id of the payment or refund. */
  readonly external_id: string;
  /** The reversal of a refund is a top-up. */
  readonly kind: PaymentKind;
  readonly amount_micros: number;
  readonly status: PaymentStatus;
  /** The top-up of a refund or its reversal, where the provider names one. */
  readonly refunds_payment_id: string | null;
  readonly created_by_user_id: string | null;
  readonly created_at_ms: number;
  readonly settled_at_ms: number | null;
}

export const PAYMENT_EVENT_KINDS = [
  'completed',
  'canceled',
  'refunded',
  'refund_reversed',
  'irrelevant',
  'unreadable',
] as const;
export type PaymentEventKind = (typeof PAYMENT_EVENT_KINDS)[number];

export const PAYMENT_EVENT_OUTCOMES = [
  'applied',
  'waiting',
  'known',
  'irrelevant',
  'unresolved',
  'assigned',
  'dismissed',
] as const;
export type KeptOutcome = (typeof PAYMENT_EVENT_OUTCOMES)[number];

/** A genuine event of a provider, with its outcome: ids, amounts and times, nothing personal. */
export interface KeptEvent {
  readonly provider: string;
  /** The provider's id of the event; its deliveries share it. */
  readonly event_id: string;
  /** The provider's name for the type of the event. */
  readonly type: string;
  readonly kind: PaymentEventKind;
  readonly occurred_at_ms: number | null;
  /**
   * The provider's id of the payment or refund, and of the payment that a refund belongs to (itself for a
   * payment).
   */
  readonly external_id: string | null;
  readonly payment_external_id: string | null;
  /** The order that the event names; neither must exist here. */
  readonly payment_id: string | null;
  readonly organization_id: string | null;
  /** Null when the event has no whole number of cents in US dollars. */
  readonly amount_micros: number | null;
  readonly outcome: KeptOutcome;
  /** The reason why an event is irrelevant or unresolved. */
  readonly reason: string | null;
  readonly received_at_ms: number;
  /** The time at which the outcome was last decided. */
  readonly decided_at_ms: number;
}

/** The identity of the payment or refund that an event is about. */
export interface EventSubject {
  readonly kind: PaymentEventKind;
  readonly external_id: string;
  readonly payment_external_id: string;
}

/** A decision about an event. */
export interface EventDecision {
  readonly outcome: KeptOutcome;
  readonly decided_at_ms: number;
  /** The owner of the event, where somebody has decided it. */
  readonly organization_id?: string | undefined;
}

/** The stored payments, refunds and events of payment providers. */
export interface PaymentRecords {
  findPayment(payment_id: string): Promise<Payment | undefined>;
  /** Returns the payment or refund with this id at a provider. */
  findExternalPayment(provider: string, external_id: string): Promise<Payment | undefined>;
  /** Returns the unsettled payments, oldest first, of one organization and one provider, or of all. */
  pendingPayments(organization_id?: string, provider?: string): Promise<Payment[]>;
  /** Returns the refunds of a payment and their reversals, oldest first. */
  returnsOf(payment_id: string): Promise<Payment[]>;
  /** Returns the newest refunds of an organization and their reversals, newest first, at most `limit`. */
  returnsTo(organization_id: string, limit: number): Promise<Payment[]>;
  /**
   * Returns the time at which the organization's first top-up became credit; undefined when there is none.
   */
  firstCredit_ms(organization_id: string): Promise<number | undefined>;
  /** Returns an organization's payments through a provider less refunds, in micro-dollars. */
  paidThrough(provider: string, organization_id: string): Promise<number>;
  /** Rejects with the store's error when a payment has this id, or this id at the provider. */
  insertPayment(payment: Payment): Promise<void>;
  settlePayment(
    payment_id: string,
    settled: Pick<Payment, 'amount_micros'> & {
      readonly status: 'completed' | 'canceled';
      readonly settled_at_ms: number;
    },
  ): Promise<void>;

  /** Returns the event of this id, of that provider or of any. */
  findEvent(event_id: string, provider?: string): Promise<KeptEvent | undefined>;
  /** Returns events, newest first, at most `limit`, with this outcome or with any. */
  listEvents(limit: number, outcome?: KeptOutcome): Promise<KeptEvent[]>;
  /**
   * Returns the newest events that name an organization or are about its payments, newest first, at most
   * `limit`.
   */
  eventsOf(organization_id: string, limit: number): Promise<KeptEvent[]>;
  /** Returns the number of events with this outcome. */
  countEvents(outcome: KeptOutcome): Promise<number>;
  /** Returns the refunds and reversals of a payment with this outcome, in the order of arrival. */
  returnEvents(provider: string, payment_external_id: string, outcome: KeptOutcome): Promise<KeptEvent[]>;
  /** Returns true if an event about the same payment or refund has one of these outcomes. */
  hasEvent(provider: string, subject: EventSubject, outcomes: readonly KeptOutcome[]): Promise<boolean>;
  /**
   * Inserts an event. Replaces a stored event of this id if its outcome is in `replaced`, and keeps its time
   * of arrival.
   */
  keepEvent(event: KeptEvent, replaced: readonly KeptOutcome[]): Promise<void>;
  /** Decides about an event, if it has one of these outcomes, and clears the reason of the old outcome. */
  decideEvent(
    event: Pick<KeptEvent, 'provider' | 'event_id'>,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void>;
  /** Decides in the same way about all events about the same payment or refund. */
  decideEventsAbout(
    provider: string,
    subject: EventSubject,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void>;
}
