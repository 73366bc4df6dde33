import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { readOrganization } from '../../src/accounts/organizations.ts';
import { answer } from '../../src/http/app.ts';
import { webhookRoute } from '../../src/http/webhook-routes.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { ADDRESS_REFUSALS_PER_MINUTE, RefusalBudgets } from '../../src/limits/refusal-budgets.ts';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { createLog } from '../../src/log/log.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { assignPaymentEvent } from '../../src/payments/resolve-event.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { systemClock } from '../../src/time/clock.ts';
import { adjustment, type Call, eventId, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { openBooks } from '../payments/support.ts';
import { DOLLAR } from '../support/money.ts';
import { parseRaw, sendRaw } from '../support/raw-http.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

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
  const { organization_id, key } = await addAccount(service, { credit_dollars: 0 });
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
  expect((await readOrganization(service.accounts.store, organization_id)).credit_micros).toBe(0);

  expect((await send(sign(body))).status).toBe(200);
  expect((await send(sign(body))).status).toBe(200);
  expect((await readOrganization(service.accounts.store, organization_id)).credit_micros).toBe(25 * DOLLAR);
  expect((await post(service, key, SMALL_REQUEST)).status).toBe(200);
});

test('a call without what can be a signature is refused before its body is read', async () => {
  for (const signature of [null, '', 'ts=1;h1=00', `h1=${'0'.repeat(64)}`]) {
    const header = signature === null ? '' : `Paddle-Signature: ${signature}\r\n`;
    // The body that is announced never comes; `sendRaw` returns when the server has closed the connection.
    const head = `POST /webhooks/paddle HTTP/1.1\r\nHost: tds\r\n${header}Content-Length: 1000000\r\n\r\n`;
    const { status, headers, body } = parseRaw(await sendRaw(service.server.address, head, ['{']));
    expect(status).toBe(401);
    expect(JSON.parse(body)).toMatchObject({
      error: { type: 'authentication_error', code: 'invalid_signature' },
      request_id: headers['x-request-id'],
    });
  }
});

test('forged calls have a budget of refusals, and genuine ones of the same address are taken', async () => {
  const address = '198.51.100.7';
  const answerTo = ({ body, signature }: Call) =>
    Promise.resolve(
      service.service.handle(
        new Request('http://localhost/webhooks/paddle', {
          method: 'POST',
          headers: { 'paddle-signature': signature ?? '' },
          body,
        }),
        address,
      ),
    );
  const genuine = sign(transaction('transaction.updated'));
  const forged = sign(genuine.body, { secret: 'another' });
  const { refusals, clock } = service.service.services;
  for (let count = 1; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) {
    refusals.spendOfAddress(address, clock.monotonic_ms());
  }
  // The clock of the service goes on, so that a few more are answered.
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 200) statuses.push((await answerTo(forged)).status);
  expect(statuses[0]).toBe(401);
  expect(statuses.at(-1)).toBe(429);
  expect((await answerTo(genuine)).status).toBe(200);
});

test('a genuine payment of nobody is answered 503 until the operator has decided, and then 200', async () => {
  const { organization_id } = await addAccount(service, { credit_dollars: 0 });
  const body = transaction('transaction.completed', { id: 'txn_nobody' });
  for (let round = 0; round < 2; round += 1) {
    const response = await send(sign(body));
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'unresolved_payment' } });
  }
  await assignPaymentEvent(service.accounts, OPERATOR, { event_id: eventId(body), organization_id });
  expect((await send(sign(body))).status).toBe(200);
  expect((await readOrganization(service.accounts.store, organization_id)).credit_micros).toBe(25 * DOLLAR);
});

describe('answers and log lines', () => {
  type Line = readonly [level: string, message: string, details: object];

  const ORDERED = { external_id: 'txn_ordered', url: null };

  /** The route on a database of its own, where a top-up is not paid yet, with what it logs. */
  async function answerTo(call: Call) {
    const books = await openBooks();
    const { organization_id } = books;
    const ordering = { ...provider, createCheckout: () => Promise.resolve(ORDERED) };
    await startTopUp(books.context, OPERATOR, ordering, { organization_id, amount_micros: 25 * DOLLAR });
    const lines: Line[] = [];
    const write =
      (level: string) =>
      (message: string, details: object = {}) =>
        void lines.push([level, message, details]);
    const context = { ...books.context, clock: systemClock };
    const route = webhookRoute({
      payments: { context, provider },
      log: { info: write('info'), warn: write('warn'), error: write('error') },
      body_limits: {
        budget: new BodyBudget(),
        deadline_ms: 60_000,
        unknown_bodies: new UnknownBodies(),
        unknown_deadline_ms: 60_000,
      },
      problems: new ProblemLog(createLog('silent'), systemClock),
      refusals: new RefusalBudgets([1, 2]),
      clock: systemClock,
    });
    if (route.handle === null) throw new Error('the route must be there');
    const response = await answer(
      route.handle,
      new Request('http://localhost/webhooks/paddle', {
        method: 'POST',
        body: call.body,
        headers: call.signature === null ? {} : { 'paddle-signature': call.signature },
      }),
      {
        request_id: 'req_1',
        url: new URL('http://localhost/webhooks/paddle'),
        started_ms: 0,
        span: null,
        path: null,
        client_address: '',
        onKnown: () => {},
        caller: null,
        refusal: null,
        is_over_budget: false,
      },
    );
    books.remove();
    const answered: unknown = await response.json();
    return { status: response.status, answer: answered, lines };
  }

  const lost = transaction('transaction.completed', {
    id: 'txn_lost',
    custom_data: { payment_id: 'pay_lost', organization_id: 'org_lost', amount_micros: 25 * DOLLAR },
  });
  const rows: readonly (readonly [string, Call, number, string, Line])[] = [
    [
      'forged',
      sign(lost, { secret: 'guess' }),
      401,
      'invalid_signature',
      ['warn', expect.stringContaining('not signed'), {}],
    ],
    [
      'too old',
      sign(lost, { age_s: 3_600 }),
      401,
      'signature_outside_tolerance',
      ['error', expect.stringContaining('clock'), { age_s: expect.any(Number) }],
    ],
    [
      'unreadable',
      sign('{'),
      400,
      'unreadable_webhook',
      ['error', expect.stringContaining('cannot be read'), { event_id: null, type: null }],
    ],
    [
      'unresolved',
      sign(lost),
      503,
      'unresolved_payment',
      [
        'error',
        expect.stringContaining('operator'),
        {
          event_id: eventId(lost),
          type: 'transaction.completed',
          external_id: 'txn_lost',
          payment_external_id: 'txn_lost',
          payment_id: 'pay_lost',
          organization_id: 'org_lost',
          amount_micros: 25 * DOLLAR,
          reason: 'its organization does not exist',
        },
      ],
    ],
  ];
  test('waiting: 200, and a warning, so that a refund that never fits is seen', async () => {
    const refund = adjustment('adjustment.created', { id: 'adj_waits', transaction_id: ORDERED.external_id });
    const { status, answer, lines } = await answerTo(sign(refund));
    expect({ status, answer }).toEqual({ status: 200, answer: { outcome: 'waiting' } });
    expect(lines).toEqual([
      ['warn', expect.stringContaining('waits'), expect.objectContaining({ event_id: eventId(refund) })],
    ]);
  });

  for (const [name, call, status, code, [level, message, details]] of rows) {
    test(`${name}: ${status} ${code}, and a line of its own`, async () => {
      const answered = await answerTo(call);
      expect(answered).toMatchObject({ status, answer: { error: { code } } });
      expect(answered.lines).toHaveLength(1);
      const [line] = answered.lines;
      expect(line?.slice(0, 2)).toEqual([level, message]);
      expect(line?.[2]).toEqual(details);
    });
  }
});

test('without a provider the path does not exist', async () => {
  const bare = await startTestService();
  const response = await bare.fetch('/webhooks/paddle', { method: 'POST', body: '{}' });
  expect(response.status).toBe(404);
  await bare.close();
});
