import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ADDRESS_REFUSALS_PER_MINUTE } from '../../src/limits/refusal-budgets.ts';
import { MovableClock } from '../support/clock.ts';
import { type Around, Gate, intercepted } from '../support/faults.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { expectAnyError, expectDecision, platformHeaders } from './expectations.ts';
import { MODEL_HEADERS, RATE_REQUEST_HEADERS, STATUS_OF_ADDED_CODE, STATUS_OF_CODE } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const Documented = Type.Object({
  description: Type.String(),
  headers: Type.Record(Type.String(), Type.Unknown()),
});
const Operation = Type.Object({ responses: Type.Record(Type.String(), Documented) });
const Reference = Type.Object({
  tags: Type.Array(Type.Object({ name: Type.String(), description: Type.Optional(Type.String()) })),
  paths: Type.Record(Type.String(), Type.Record(Type.String(), Operation)),
  components: Type.Object({ schemas: Type.Record(Type.String(), Type.Unknown()) }),
});

/** The wrapper of the next evaluations. */
let around: Around = (run) => run();
let service: TestService;
let account: TestAccount;
let reference: Static<typeof Reference>;
beforeAll(async () => {
  service = await startTestService({
    queue_limit: 1,
    clock: MovableClock.stopped(),
    embedded: true,
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
  account = await addAccount(service);
  const document: unknown = await (await service.fetch('/swagger/json')).json();
  if (!Value.Check(Reference, document)) throw new Error('the reference lacks what is looked for');
  reference = document;
});
afterAll(() => service.close());

/** Returns the reference's responses of a path, by status. */
function responsesOf(path: string): Static<typeof Operation>['responses'] {
  const [operation] = Object.values(reference.paths[path] ?? {});
  if (operation === undefined) throw new Error(`the reference has no ${path}`);
  return operation.responses;
}

/** Returns the names of the documented headers of a status, in alphabetical order. */
function headersOf(path: string, status: number): readonly string[] {
  return Object.keys(responsesOf(path)[status]?.headers ?? {}).sort();
}

/** Returns the reference's paragraph that begins with a code, on a path. */
function paragraphOf(path: string, code: string): string | undefined {
  return Object.values(responsesOf(path))
    .flatMap(({ description }) => description.split('\n\n'))
    .find((paragraph) => paragraph.startsWith(`\`${code}\`: `));
}

/** A property of a part of the reference; undefined where there is none. */
function property(part: unknown, name: string): unknown {
  return Object.entries(part ?? {}).find(([key]) => key === name)?.[1];
}

/** Headers that say nothing to a client of the API, on every response. */
const OF_HTTP = [
  'cache-control',
  'content-type',
  'content-length',
  'date',
  'connection',
  'keep-alive',
  'x-content-type-options',
];

/** No path of the reference gives these. */
const OF_OTHER_PATHS = ['not_found', 'method_not_allowed'];
const ADDITION = /an addition to the specification/i;

describe('The reference of the running service', () => {
  test('lists every code of a decision under its status, and marks those that are additions', () => {
    for (const path of ['/v1/decisions', '/v1/systemone']) {
      for (const [code, status] of Object.entries(STATUS_OF_CODE)) {
        if (OF_OTHER_PATHS.includes(code)) continue;
        const paragraph = paragraphOf(path, code);
        expect([code, responsesOf(path)[status]?.description]).toEqual([
          code,
          expect.stringContaining(`\`${code}\`: `),
        ]);
        expect([code, ADDITION.test(paragraph ?? '')]).toEqual([code, code in STATUS_OF_ADDED_CODE]);
      }
    }
  });

  test('lists all additions in one place, after all operations', () => {
    const { description } = reference.tags.at(-1) ?? {};
    const named = [
      ...Object.keys(STATUS_OF_ADDED_CODE),
      'Retry-After',
      'usage.output_tokens',
      'models',
      '65 levels',
      `${ADDRESS_REFUSALS_PER_MINUTE} refusals`,
    ];
    for (const addition of named) expect(description).toContain(addition);
  });

  test('marks the added fields', () => {
    const { DecisionResponse, ModelList } = reference.components.schemas;
    expect(DecisionResponse).toMatchObject({
      properties: {
        usage: { properties: { output_tokens: { description: expect.stringMatching(ADDITION) } } },
      },
    });
    expect(ModelList).toMatchObject({
      properties: { models: { description: expect.stringMatching(ADDITION) } },
    });
  });

  /** The bounds of the contract; those of questions are the organization's, so that no schema can have them. */
  test.each([
    ['DecisionRequest', 'questions', 'minProperties', 1, 'maxProperties', undefined],
    ['SystemOneRequest', 'questions', 'minProperties', 1, 'maxProperties', undefined],
    ['ChoiceQuestion', 'criteria', 'minProperties', 2, 'maxProperties', 255],
    ['ScoreQuestion', 'criteria', 'minItems', 2, 'maxItems', 255],
  ] as const)(
    '%s: no other bounds of %s than an organization can have',
    (name, field, least, lower, most, upper) => {
      const found = ['properties', field].reduce(property, reference.components.schemas[name]);
      expect([property(found, least), property(found, most)]).toEqual([lower, upper]);
    },
  );

  test('lists the headers of each status', () => {
    const headers = (status: number) => headersOf('/v1/decisions', status);
    const retry = 'retry-after';
    for (const status of [401, 402, 404, 408, 413, 431, 500]) {
      expect([status, headers(status)]).toEqual([status, ['x-request-id']]);
    }
    const of_the_model = [
      ...MODEL_HEADERS,
      'tds-ignored-fields',
      'tds-record-tokens-left-out',
      'x-request-id',
    ].sort();
    expect(headers(200)).toEqual([...of_the_model, 'idempotent-replayed'].sort());
    expect(headers(409)).toEqual([retry, 'x-request-id', 'x-should-retry']);
    for (const status of [400, 422]) {
      expect([status, headers(status)]).toEqual([status, of_the_model.toSorted()]);
    }
    for (const status of [502, 503]) {
      expect([status, headers(status)]).toEqual([status, [retry, ...of_the_model].sort()]);
    }
    expect(headers(429)).toEqual([retry, ...RATE_REQUEST_HEADERS, 'x-request-id', 'x-should-retry'].sort());
    expect(headers(415)).toEqual(['accept-encoding', 'x-request-id']);
  });

  test('lists the headers of single paths on these, and x-should-retry where a code has it', () => {
    expect(headersOf('/v1/tokens', 200)).toEqual(['tds-ignored-fields', 'x-request-id']);
    const refused = ['retry-after', ...RATE_REQUEST_HEADERS, 'x-request-id'].sort();
    for (const path of ['/v1/tokens', '/v1/models/{id}']) expect(headersOf(path, 429)).toEqual(refused);
    expect(headersOf('/v1/models', 429)).toEqual([...refused, 'x-typesafe-request-id'].sort());
    for (const path of ['/v1/systemone', '/v1/models']) {
      for (const status of Object.keys(responsesOf(path))) {
        expect([status, headersOf(path, Number(status))]).toEqual([
          status,
          expect.arrayContaining(['x-typesafe-request-id']),
        ]);
      }
    }
  });
});

describe('What the running service answers is in its reference', () => {
  const expectDocumented = async (path: string, response: Response) => {
    const { status } = response;
    const documented = [...headersOf(path, status), ...OF_HTTP];
    const others = [...response.headers.keys()].filter((name) => !documented.includes(name));
    expect([status, others]).toEqual([status, []]);
    if (status === 200) {
      await response.text();
      return;
    }
    const { error } = await expectAnyError(response);
    expect([error.code, paragraphOf(path, error.code)]).toEqual([error.code, expect.any(String)]);
  };

  test('decisions, good and refused', async () => {
    const path = '/v1/decisions';
    const { key } = account;
    const deep = `${'['.repeat(65)}${']'.repeat(65)}`;
    await expectDocumented(path, await ask(service, key));
    await expectDocumented(path, await post(service, key, `{"model":"decision-1","state":${deep}}`));
    await expectDocumented(path, await post(service, key, '{'));
    await expectDocumented(path, await post(service, key, ' '.repeat(1_100_000)));
    await expectDocumented(path, await ask(service, key, { model: 'chat-1' }));
    await expectDocumented(
      path,
      await ask(service, key, { questions: { q: { type: 'noul', criteria: 1 } } }),
    );
    await expectDocumented(path, await ask(service, 'none'));
    await expectDocumented(path, await ask(service, (await addAccount(service, { credit_dollars: 0 })).key));
    await expectDocumented(
      '/v1/systemone',
      await post(service, key, { ...SMALL_REQUEST, model: 1 }, '/v1/systemone'),
    );
    await expectDocumented('/v1/systemone', await post(service, key, SMALL_REQUEST, '/v1/systemone'));
    await expectDocumented('/v1/tokens', await post(service, key, { ...SMALL_REQUEST, x: 1 }, '/v1/tokens'));
    for (const coded of [path, '/v1/systemone', '/v1/tokens', '/v1/decisions/batch']) {
      const headers = { authorization: `Bearer ${key}`, 'content-encoding': 'compress' };
      const response = await service.fetch(coded, { method: 'POST', headers, body: '{}' });
      expect([coded, response.status]).toEqual([coded, 415]);
      await expectDocumented(coded, response);
    }
  });

  test('a full queue: 502 with Retry-After', async () => {
    const gate = new Gate();
    around = gate.hold;
    const first = ask(service, account.key);
    await gate.reached;
    const refused = await ask(service, account.key);
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([502, true]);
    await expectDocumented('/v1/decisions', refused);
    gate.open();
    await expectDecision(await first);
    around = (run) => run();
  });

  test('the model list, and 429 for an address that is only refused', async () => {
    const path = '/v1/models';
    const list = (key: string) =>
      service.service.handle(
        new Request(`http://localhost${path}`, { headers: { 'x-api-key': key } }),
        '203.0.113.9',
      );
    await expectDocumented(path, await list(account.key));
    let refused = await list('none');
    for (let count = 0; refused.status !== 429 && count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) {
      refused = await list('none');
    }
    expect(refused.status).toBe(429);
    expect(platformHeaders(refused)).toEqual(['retry-after', ...RATE_REQUEST_HEADERS]);
    await expectDocumented(path, refused);
    expect((await list(account.key)).status).toBe(200);
  });
});
