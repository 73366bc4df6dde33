/** A payment that a provider is asked to collect. */
export interface Order {
  readonly payment_id: string;
  readonly organization_id: string;
  readonly amount_micros: number;
}

/** How the customer pays an order. */
export interface Checkout {
  /** The provider's own id of the payment, which its events name. */
  readonly external_id: string;
  /** Where the customer pays; null when they are told in words. */
  readonly url: string | null;
}

/** The order that an event names: what the provider was given with the checkout. */
export interface NamedOrder {
  readonly payment_id: string;
  readonly organization_id: string;
  /** Null when the checkout did not say. */
  readonly amount_micros: number | null;
}

/** A payment that the provider has collected. */
export interface CompletedPayment {
  readonly kind: 'completed';
  readonly external_id: string;
  /** What was paid without tax; null when that is not a whole number of cents in US dollars. */
  readonly amount_micros: number | null;
  /** Null when the event names no order of ours. */
  readonly order: NamedOrder | null;
  /** What was sold, as far as the event tells: other things can be sold through the same account. */
  readonly sold: 'credit' | 'other' | 'unknown';
}

/** Money of one payment that goes back to the customer (refund, chargeback), or returns from there (won dispute). */
export interface PaymentReturn {
  readonly kind: 'refunded' | 'refund_reversed';
  readonly external_id: string;
  /** The payment that it belongs to. */
  readonly payment_external_id: string;
  /** Without tax; null when it is not a whole number of cents in US dollars. */
  readonly amount_micros: number | null;
}

/** What a provider can report. Amounts are micro-dollars. */
export type PaymentEvent =
  | CompletedPayment
  | PaymentReturn
  | { readonly kind: 'canceled'; readonly external_id: string }
  /** No business of the ledger, for the reason given. */
  | { readonly kind: 'irrelevant'; readonly external_id: string | null; readonly reason: string }
  /** About money, in a form that this version does not know. */
  | { readonly kind: 'unreadable'; readonly external_id: string | null; readonly reason: string };

/** A genuine event as it is kept: ids, amounts and times, nothing personal. */
export interface PaymentReport {
  /** The provider's own id of the event; its deliveries share it. */
  readonly event_id: string;
  /** The provider's own name of what happened. */
  readonly type: string;
  /** Null when the provider's time cannot be read. */
  readonly occurred_at_ms: number | null;
  readonly event: PaymentEvent;
}

/** What a webhook call turned out to be. */
export type Webhook =
  /** Not signed by the provider: nothing in it may be believed. */
  | { readonly kind: 'forged' }
  /** Signed by the provider, so long ago (or, below zero, so far ahead) that it may be a recording. */
  | { readonly kind: 'outside_tolerance'; readonly age_s: number }
  /** Signed by the provider, but no event. */
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'report'; readonly report: PaymentReport };

/** A webhook call as it came. */
export interface WebhookCall {
  /** What was signed: the bytes of the body, unchanged. */
  readonly body: Uint8Array;
  readonly signature: string | null;
  readonly now_ms: number;
}

/** Collects money for us: the merchant of record, or the operator by hand. */
export interface PaymentProvider {
  /** Stored with each payment. */
  readonly name: string;
  /** Opens a checkout. Throws when the provider cannot be reached or refuses. */
  createCheckout(order: Order): Promise<Checkout>;
  /** Whether the header has the form of a signature; without one, a call is refused before its body is read. */
  isSignature(header: string | null): boolean;
  /** Verifies and reads a webhook call. Throws nothing. */
  readWebhook(call: WebhookCall): Webhook;
}
