/** A payment for a provider to collect. */
export interface Order {
  readonly payment_id: string;
  readonly organization_id: string;
  readonly amount_micros: number;
}

/** The customer's way to pay an order. */
export interface Checkout {
  /** The provider's id of the payment, which its events name. */
  readonly external_id: string;
  /** The page where the customer pays; null when instructions are given in words. */
  readonly url: string | null;
}

/** The order that an event names, as the provider got it with the checkout. */
export interface NamedOrder {
  readonly payment_id: string;
  readonly organization_id: string;
  /** Null when the checkout had none. */
  readonly amount_micros: number | null;
}

/** A payment that the provider has collected. */
export interface CompletedPayment {
  readonly kind: 'completed';
  readonly external_id: string;
  /** The payment without tax; null when that is not a whole number of cents in US dollars. */
  readonly amount_micros: number | null;
  /** Null when the event names no order of ours. */
  readonly order: NamedOrder | null;
  /** The product, as far as the event says; the same account can sell others. */
  readonly sold: 'credit' | 'other' | 'unknown';
}

/**
 * Money of one payment that goes back to the customer (refund, chargeback), or returns from there (won
 * dispute).
 */
export interface PaymentReturn {
  readonly kind: 'refunded' | 'refund_reversed';
  readonly external_id: string;
  /** The payment that it belongs to. */
  readonly payment_external_id: string;
  /** Without tax; null when it is not a whole number of cents in US dollars. */
  readonly amount_micros: number | null;
}

/** An event of a provider. Amounts are micro-dollars. */
export type PaymentEvent =
  | CompletedPayment
  | PaymentReturn
  | { readonly kind: 'canceled'; readonly external_id: string }
  /** The event does not concern the ledger, for the reason given. */
  | { readonly kind: 'irrelevant'; readonly external_id: string | null; readonly reason: string }
  /** The event concerns money, in a form that this version does not know. */
  | { readonly kind: 'unreadable'; readonly external_id: string | null; readonly reason: string };

/** The stored part of a genuine event: ids, amounts and times, nothing personal. */
export interface PaymentReport {
  /** The provider's id of the event; its deliveries share it. */
  readonly event_id: string;
  /** The provider's name for the type of the event. */
  readonly type: string;
  /** Null when the provider's time cannot be read. */
  readonly occurred_at_ms: number | null;
  readonly event: PaymentEvent;
}

/** The result of reading a webhook call. */
export type Webhook =
  /** The provider did not sign it: nothing in it may be trusted. */
  | { readonly kind: 'forged' }
  /** The provider signed it so long ago (or, below zero, so far ahead) that it may be a recording. */
  | { readonly kind: 'outside_tolerance'; readonly age_s: number }
  /** The provider signed it, but it is no event. */
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'report'; readonly report: PaymentReport };

/** A webhook call as received. */
export interface WebhookCall {
  /** The signed bytes: the body, unchanged. */
  readonly body: Uint8Array;
  readonly signature: string | null;
  readonly now_ms: number;
}

/**
 * A checkout that the provider did not open, for the operator: the message has only our sentences and the
 * provider's words for an error.
 */
export class PaymentProviderFailed extends Error {
  override readonly name = 'PaymentProviderFailed';
}

/** Collects money for us: the merchant of record, or the operator by hand. */
export interface PaymentProvider {
  /** The name that is stored with each payment. */
  readonly name: string;
  /** Opens a checkout. Rejects with `PaymentProviderFailed` when the provider cannot be reached or refuses. */
  createCheckout(order: Order): Promise<Checkout>;
  /** Returns the signature in a call's headers; null for none. Then the call is refused before its body is read. */
  signatureIn(headers: Headers): string | null;
  /** Verifies and reads a webhook call. Never throws. */
  readWebhook(call: WebhookCall): Webhook;
}
