import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/accounts/actor.ts';
import { readOrganization } from '../../src/accounts/organizations.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { type Call, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const DOLLAR = 1_000_000;
const provider = paddleProvider(SETTINGS);
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ payment_provider: provider });
});
afterAll(() => service.close());

function send({ body, signature }: Call): Promise<Response> {
  const headers = new Headers({ 'content-type': 'application/json' });
  if (signature !== null) headers.set('paddle-signature', signature);
  return service.fetch('/webhooks/paddle', { method: 'POST', headers, body });
}

test('a completed payment is credited once and opens the API at once; a forged call is refused', async () => {
  const { organization_id, key } = addAccount(service, { credit_dollars: 0 });
  const checkout = { external_id: 'txn_http', url: 'https://pay.example/' };
  await startTopUp(
    service.accounts,
    OPERATOR,
    { ...provider, createCheckout: () => Promise.resolve(checkout) },
    { organization_id, amount_micros: 25 * DOLLAR },
  );
  expect((await post(service, key, SMALL_REQUEST)).status).toBe(402);

  const body = transaction('transaction.completed', { id: 'txn_http' });
  const forged = await send(sign(body, { secret: 'another' }));
  expect(forged.status).toBe(401);
  expect(await forged.json()).toMatchObject({ error: { code: 'invalid_signature' } });
  expect(readOrganization(service.accounts, organization_id).credit_micros).toBe(0);

  expect((await send(sign(body))).status).toBe(200);
  expect((await send(sign(body))).status).toBe(200);
  expect(readOrganization(service.accounts, organization_id).credit_micros).toBe(25 * DOLLAR);
  expect((await post(service, key, SMALL_REQUEST)).status).toBe(200);
});

test('without a provider the path does not exist', async () => {
  const bare = await startTestService();
  const response = await bare.fetch('/webhooks/paddle', { method: 'POST', body: '{}' });
  expect(response.status).toBe(404);
  await bare.close();
});
