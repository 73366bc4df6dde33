import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { createApp } from '../../src/http/app.ts';
import type { NamedSchema, Route } from '../../src/http/route.ts';
import { routesOf } from '../../src/http/routes.ts';
import { closeAudited } from '../support/money.ts';
import {
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { shapeOf } from '../support/shape.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let account: TestAccount;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  account = await addRichlyLimited(service, 25_000_000);
});
afterAll(() => closeAudited(service));

/** The routes that the document shows. */
function shownRoutes(): readonly (Route & { readonly operation: NonNullable<Route['operation']> })[] {
  return routesOf(service.service.services).flatMap((route) => {
    const { operation } = route;
    return operation === null ? [] : [{ ...route, operation }];
  });
}

/** Each operation's examples beside each other: what is sent, and what comes back. */
function exchanges() {
  return shownRoutes().flatMap(({ method, path, operation: { parameter, body, success } }) =>
    Object.entries(success.examples).map(([name, { value }]) => ({
      method,
      path: parameter === undefined ? path : path.replace(`{${parameter.name}}`, parameter.example ?? ''),
      name,
      sent: body?.examples[name]?.value,
      answer: value,
    })),
  );
}

const fitsOneOf = (schemas: readonly NamedSchema[], value: unknown) =>
  schemas.some(({ schema }) => Value.Check(schema, value));

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const document: unknown = await (await service.fetch('/openapi.json')).json();
    Value.Assert(Type.Record(Type.String(), Type.Unknown()), document);
    const { valid, errors } = await new Validator().validate(document);
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  test('is the same where @elysiajs/swagger has it by default', async () => {
    const [document, other] = await Promise.all(
      ['/openapi.json', '/swagger/json'].map(async (path) => await (await service.fetch(path)).text()),
    );
    expect(document).toBe(other);
  });

  test('names the address of the service: the public one, or else where it came from', async () => {
    const { services } = service.service;
    const serversOf = async (public_url: string | null) => {
      const app = createApp({ ...services, site: { ...services.site, public_url } });
      const response = await app.handle(new Request('http://localhost/openapi.json'), '203.0.113.9');
      return await response.json();
    };
    expect(await serversOf('https://tds.example.com')).toMatchObject({
      servers: [{ url: 'https://tds.example.com' }],
    });
    expect(await serversOf(null)).toMatchObject({ servers: [{ url: '/' }] });
  });

  test('has maps in the words that generators of clients know', async () => {
    const text = await (await service.fetch('/openapi.json')).text();
    expect(text).not.toContain('patternProperties');
    expect(JSON.parse(text)).toMatchObject({
      components: {
        schemas: {
          DecisionRequest: {
            properties: { questions: { additionalProperties: { $ref: '#/components/schemas/Question' } } },
          },
          ChoiceAnswer: { properties: { probabilities: { additionalProperties: { type: 'number' } } } },
        },
      },
    });
  });

  test('has no union of literals of one type, of which generators make classes that refuse each other', async () => {
    const document: unknown = await (await service.fetch('/openapi.json')).json();
    expect(document).toMatchObject({
      components: { schemas: { Mode: { type: 'string', enum: ['fast', 'consistent'] } } },
    });
    const unions: unknown[] = [];
    JSON.stringify(document, (_, part: unknown) => {
      if (Value.Check(Type.Object({ anyOf: Type.Array(Type.Object({ const: Type.String() })) }), part)) {
        unions.push(part);
      }
      return part;
    });
    expect(unions).toEqual([]);
  });

  test('has a schema for each question and answer type, told apart by `type`', async () => {
    const document: unknown = await (await service.fetch('/openapi.json')).json();
    const union = (kinds: Readonly<Record<string, string>>) => ({
      oneOf: Object.values(kinds).map((name) => ({ $ref: `#/components/schemas/${name}` })),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(
          Object.entries(kinds).map(([kind, name]) => [kind, `#/components/schemas/${name}`]),
        ),
      },
    });
    expect(document).toMatchObject({
      components: {
        schemas: {
          Question: union({ noul: 'NoulQuestion', choice: 'ChoiceQuestion', score: 'ScoreQuestion' }),
          Answer: union({ noul: 'NoulAnswer', choice: 'ChoiceAnswer', score: 'ScoreAnswer' }),
          OpenAiQuestion: union({
            predicate: 'OpenAiPredicateQuestion',
            choice: 'OpenAiChoiceQuestion',
            score: 'OpenAiScoreQuestion',
          }),
          NoulQuestion: { properties: { type: { const: 'noul' } } },
        },
      },
    });
  });
});

describe('the examples', () => {
  test('are there for every operation, a request beside each answer', () => {
    for (const { method, path, operation } of shownRoutes()) {
      const answers = Object.keys(operation.success.examples);
      expect([method, path, answers.length > 0]).toEqual([method, path, true]);
      expect(Object.keys(operation.body?.examples ?? operation.success.examples)).toEqual(answers);
    }
  });

  test('fit the schemas', () => {
    for (const { method, path, operation } of shownRoutes()) {
      for (const { schemas, examples } of [operation.body, operation.success].filter(
        (each) => each !== undefined,
      )) {
        for (const [name, { value }] of Object.entries(examples)) {
          expect([method, path, name, fitsOneOf(schemas, value)]).toEqual([method, path, name, true]);
        }
      }
    }
  });

  test('work as they stand, and what comes back is like the example', async () => {
    for (const { method, path, name, sent, answer } of exchanges()) {
      const response = await service.fetch(path, {
        method,
        headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
        ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
      });
      expect([path, name, response.status]).toEqual([path, name, 200]);
      expect([path, name, shapeOf(await response.json())]).toEqual([path, name, shapeOf(answer)]);
    }
  });
});
