import type { PaymentEvent } from './provider.ts';

export const PAYMENT_KINDS = ['top_up', 'refund'] as const;
export type PaymentKind = (typeof PAYMENT_KINDS)[number];

export const PAYMENT_STATUSES = ['pending', 'completed', 'canceled'] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** A payment or a refund, one for each that a provider knows. Amounts are micro-dollars, above 0. */
export interface Payment {
  readonly id: string;
  readonly organization_id: string;
  readonly provider: string;
  /** The provider's own id of the payment or refund. */
  readonly external_id: string;
  /** A reversed refund is a top-up. */
  readonly kind: PaymentKind;
  readonly amount_micros: number;
  readonly status: PaymentStatus;
  /** For a refund, or its reversal: the top-up that it belongs to, where the provider names one. */
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
] as const satisfies readonly PaymentEvent['kind'][];

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

/** A genuine event of a provider, with what came of it: ids, amounts and times, nothing personal. */
export interface KeptEvent {
  readonly provider: string;
  /** The provider's own id of the event; its deliveries share it. */
  readonly event_id: string;
  /** The provider's own name of what happened. */
  readonly type: string;
  readonly kind: PaymentEvent['kind'];
  readonly occurred_at_ms: number | null;
  /** The provider's id of the payment or refund, and of the payment that a refund belongs to (itself for a payment). */
  readonly external_id: string | null;
  readonly payment_external_id: string | null;
  /** The order that the event names; neither needs to exist here. */
  readonly payment_id: string | null;
  readonly organization_id: string | null;
  /** Null when the event has no whole number of cents in US dollars. */
  readonly amount_micros: number | null;
  readonly outcome: KeptOutcome;
  /** Why an event is irrelevant or unresolved. */
  readonly reason: string | null;
  readonly received_at_ms: number;
  /** When the outcome was last decided. */
  readonly decided_at_ms: number;
}

/** What identifies the payment or refund that an event is about. */
export interface EventSubject {
  readonly kind: PaymentEvent['kind'];
  readonly external_id: string;
  readonly payment_external_id: string;
}

/** What is decided about an event. */
export interface EventDecision {
  readonly outcome: KeptOutcome;
  readonly decided_at_ms: number;
  /** Whose the event is, where somebody has said so. */
  readonly organization_id?: string | undefined;
}

/** What is kept of payments, refunds and the events of payment providers. */
export interface PaymentRecords {
  findPayment(payment_id: string): Promise<Payment | undefined>;
  /** The payment or refund that a provider knows under this id. */
  findExternalPayment(provider: string, external_id: string): Promise<Payment | undefined>;
  /** What is not settled yet, oldest first: of one organization or of all. */
  pendingPayments(organization_id?: string): Promise<Payment[]>;
  /** The refunds of a payment and their reversals, oldest first. */
  returnsOf(payment_id: string): Promise<Payment[]>;
  /** The newest refunds of an organization and their reversals, newest first, at most `limit` of them. */
  returnsTo(organization_id: string, limit: number): Promise<Payment[]>;
  /** When the organization's first top-up became credit; undefined when none has. */
  firstCredit_ms(organization_id: string): Promise<number | undefined>;
  /** What an organization has paid through a provider, less what was refunded of it, in micro-dollars. */
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

  /** The event of this id, of that provider or of any. */
  findEvent(event_id: string, provider?: string): Promise<KeptEvent | undefined>;
  /** Events, newest first, at most `limit` of them: with this outcome or with any. */
  listEvents(limit: number, outcome?: KeptOutcome): Promise<KeptEvent[]>;
  /** The refunds and reversals of a payment that have this outcome, in the order in which they came. */
  returnEvents(provider: string, payment_external_id: string, outcome: KeptOutcome): Promise<KeptEvent[]>;
  /** Whether an event about this very thing has one of these outcomes. */
  hasEvent(provider: string, subject: EventSubject, outcomes: readonly KeptOutcome[]): Promise<boolean>;
  /**
   * Inserts an event. An event of this id that was kept before is replaced if its outcome is one of those given; its
   * time of arrival stays.
   */
  keepEvent(event: KeptEvent, replaced: readonly KeptOutcome[]): Promise<void>;
  /** Decides about an event, if it has one of these outcomes; the reason of the outcome before is gone then. */
  decideEvent(
    event: Pick<KeptEvent, 'provider' | 'event_id'>,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void>;
  /** Decides in the same way about every event about this very thing. */
  decideEventsAbout(
    provider: string,
    subject: EventSubject,
    among: readonly KeptOutcome[],
    decision: EventDecision,
  ): Promise<void>;
}
