import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { createTypeSafeAi } from '@ai-sdk/typesafe-ai';
import { HTTPClient, OpenRouter } from '@openrouter/sdk';
import { noul, TypeSafeClient } from '@typesafe-ai/sdk';
import { experimental_decide } from 'ai';
import OpenAI from 'openai';
import { closeAudited, usageOf } from '../support/money.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { decisionModelOf, type WatchedFetch } from './support.ts';

/** No SDK sends the header by itself; all send it again, as it was given, with each of their retries. */

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
});
afterAll(() => closeAudited(service));

/** A network that loses the first answer, after the service has given it. */
function losingFetch(): WatchedFetch & { readonly replayed: (string | null)[] } {
  const statuses: number[] = [];
  const replayed: (string | null)[] = [];
  return {
    statuses,
    replayed,
    async fetch(input, init) {
      const response = await fetch(input, init);
      statuses.push(response.status);
      replayed.push(response.headers.get('idempotent-replayed'));
      if (statuses.length > 1) return response;
      await response.arrayBuffer();
      // As Node's own; the AI SDK retries none without a cause.
      throw new TypeError('fetch failed', { cause: new Error('other side closed') });
    },
  };
}

type Given = Pick<WatchedFetch, 'fetch'> & { readonly key: string };
type Headers = Readonly<Record<string, string>>;

const STATE = 'I was charged twice.';
const INSTRUCTIONS = 'Do they ask for money back?';

const openai = ({ key, fetch }: Given, options: OpenAI.RequestOptions) =>
  new OpenAI({ apiKey: key, baseURL: `${service.server.address}/v1`, fetch }).decisions.create(
    {
      model: 'decision-1',
      input: STATE,
      questions: [{ type: 'predicate', name: 'refund', instructions: INSTRUCTIONS }],
    },
    options,
  );

/** Asks through each SDK, with these headers. */
const SDKS: readonly (readonly [string, (given: Given, headers: Headers) => PromiseLike<unknown>])[] = [
  ['openai', (given, headers) => openai(given, { headers })],
  [
    '@typesafe-ai/sdk',
    ({ key, fetch }, headers) =>
      new TypeSafeClient({
        apiKey: key,
        baseURL: service.server.address,
        fetch,
        logLevel: 'off',
      }).systemOne({ state: STATE, questions: { refund: noul(INSTRUCTIONS) } }, { headers }),
  ],
  [
    '@ai-sdk/typesafe-ai',
    (given, headers) =>
      experimental_decide({
        model: decisionModelOf(
          createTypeSafeAi({
            apiKey: given.key,
            baseURL: `${service.server.address}/v1`,
            fetch: Object.assign(given.fetch, { preconnect: fetch.preconnect }),
          }).evaluationModel('decision-1'),
        ),
        state: STATE,
        questions: { refund: { type: 'boolean', instructions: INSTRUCTIONS } },
        headers,
      }),
  ],
  [
    '@openrouter/sdk',
    ({ key, fetch }, headers) =>
      new OpenRouter({
        apiKey: key,
        serverURL: `${service.server.address}/v1`,
        httpClient: new HTTPClient({ fetcher: fetch }),
      }).systemOne.create(
        {
          decisionsRequest: {
            model: 'decision-1',
            state: STATE,
            questions: { refund: { type: 'noul', instructions: INSTRUCTIONS } },
          },
        },
        { headers },
      ),
  ],
];

test.each(SDKS)(
  'a retry of %s after a lost answer gets that answer, and is charged once',
  async (_, askBy) => {
    const account = await addAccount(service);
    const network = losingFetch();
    await askBy({ ...network, key: account.key }, { 'Idempotency-Key': 'order-8812' });
    expect(network).toMatchObject({ statuses: [200, 200], replayed: [null, 'true'] });
    expect(await usageOf(service, account)).toHaveLength(1);
  },
);

test.each([
  ...SDKS,
  ['openai with its own `idempotencyKey`', (given) => openai(given, { idempotencyKey: 'order-8812' })],
] satisfies typeof SDKS)(
  'without the header, a retry of %s is another request, and charged',
  async (_, askBy) => {
    const account = await addAccount(service);
    const network = losingFetch();
    await askBy({ ...network, key: account.key }, {});
    expect(network).toMatchObject({ statuses: [200, 200], replayed: [null, null] });
    expect(await usageOf(service, account)).toHaveLength(2);
  },
);
