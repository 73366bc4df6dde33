import type { PaymentProvider } from './provider.ts';

export const MANUAL_PROVIDER_NAME = 'manual';

/**
 * The provider of payments that reach the operator in another way (a bank transfer) and that the operator
 * confirms.
 */
export const manualProvider: PaymentProvider = {
  name: MANUAL_PROVIDER_NAME,
  createCheckout: (order) => Promise.resolve({ external_id: order.payment_id, url: null }),
  signatureIn: () => null,
  readWebhook: () => ({ kind: 'forged' }),
};
