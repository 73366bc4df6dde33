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

/** What a provider can report about money. Amounts are without tax, in micro-dollars. */
export type PaymentEvent =
  | { readonly kind: 'completed'; readonly external_id: string; readonly amount_micros: number }
  | { readonly kind: 'canceled'; readonly external_id: string }
  | (Return & { readonly kind: 'refunded' })
  | (Return & { readonly kind: 'refund_reversed' });

/** Money of one payment that goes back to the customer (refund, chargeback), or returns from there (won dispute). */
interface Return {
  readonly external_id: string;
  /** The payment that it belongs to. */
  readonly payment_external_id: string;
  readonly amount_micros: number;
}

/** What a webhook call turned out to be. */
export type Webhook =
  /** Not signed by the provider, or too old: nothing in it may be believed. */
  | { readonly kind: 'forged' }
  /** Genuine, but no business of the ledger, for the reason given. */
  | { readonly kind: 'irrelevant'; readonly reason: string }
  | { readonly kind: 'event'; readonly event: PaymentEvent };

/** Collects money for us: the merchant of record, or the operator by hand. */
export interface PaymentProvider {
  /** Stored with each payment. */
  readonly name: string;
  /** Opens a checkout. Throws when the provider cannot be reached or refuses. */
  createCheckout(order: Order): Promise<Checkout>;
  /** Verifies and reads a webhook call; the raw body is what was signed. Throws nothing. */
  readWebhook(rawBody: string, signatureHeader: string | null): Promise<Webhook>;
}
