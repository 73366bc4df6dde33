import type { PaddleConfig } from '../config/settings.ts';
import type { PaymentProvider } from '../payments/provider.ts';

/** Returns the provider whose settings are given: Paddle Billing, or null where only the operator gives credit. */
export async function paymentProvider(config: PaddleConfig): Promise<PaymentProvider | null> {
  const { paddleApiKey, paddleWebhookSecret, paddleProductId, paddleEnvironment } = config;
  if (paddleApiKey === undefined || paddleWebhookSecret === undefined || paddleProductId === undefined)
    return null;
  // Loaded only here, because the schemas of its events would slow every other command down.
  const { paddleProvider } = await import('../payments/paddle.ts');
  return paddleProvider({
    api_key: paddleApiKey,
    webhook_secret: paddleWebhookSecret,
    product_id: paddleProductId,
    environment: paddleEnvironment,
  });
}
