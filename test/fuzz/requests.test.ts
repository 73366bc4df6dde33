import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import {
  DecisionRequestSchema,
  type DecisionResponse,
  DecisionResponseSchema,
  SystemOneRequestSchema,
} from '../../src/decisions/schemas.ts';
import type { Answer } from '../../src/questions/question.ts';
import { expectAnyError } from '../contract/expectations.ts';
import { STATUS_OF_CODE } from '../contract/spec.ts';
import { propertySeed } from '../ledger/support.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { addAccount, startTestService, type TestAccount, type TestService } from '../support/service.ts';
import { brokenBytes, changed } from './mutations.ts';
import { valuesOf } from './schema-values.ts';

setDefaultTimeout(600_000);

let service: TestService;
/** Pays for what is valid. */
let paying: TestAccount;
/**
 * Has credit, but a project that may not spend it: what is valid is refused after all the checks, without the model.
 */
let barred: TestAccount;
beforeAll(async () => {
  service = await startTestService({ embedded: true });
  const unlimited = { requests_per_minute: 1e9, tokens_per_minute: 1e12 };
  paying = await addAccount(service, { credit_dollars: 25 });
  barred = await addAccount(service, { credit_dollars: 25 });
  for (const { organization_id } of [paying, barred]) {
    await setTierSettings(service.accounts, OPERATOR, organization_id, unlimited);
  }
  await changeProject(service.accounts, OPERATOR, { project_id: barred.project_id, spend_limit_micros: 0 });
});
afterAll(() => closeAudited(service));

/** Requests of a batch are in flight together. */
const BATCH = 20;

interface Sent {
  readonly path: '/v1/decisions' | '/v1/systemone';
  readonly body: string | Uint8Array;
}

interface Answered extends Sent {
  readonly status: number;
  readonly code: string | null;
  readonly decision: DecisionResponse | null;
  /** True if the request reached the model, which alone leaves a row of usage. */
  readonly reached_model: boolean;
}

/** Sends a request and checks what every answer has: a status of the contract, an id, and one of the two shapes. */
async function send(account: TestAccount, { path, body }: Sent): Promise<Answered> {
  const response = await service.fetch(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : new Uint8Array(body),
  });
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  const { status } = response;
  const reached_model = response.headers.has('service-processing-ms');
  if (status === 200) {
    const decision: unknown = await response.json();
    if (!Value.Check(DecisionResponseSchema, decision)) {
      throw new Error(
        `not a decision: ${JSON.stringify([...Value.Errors(DecisionResponseSchema, decision)][0])}`,
      );
    }
    return { path, body, status, code: null, decision, reached_model };
  }
  const { error } = await expectAnyError(response);
  const statusOfCode = new Map<string, number>(Object.entries(STATUS_OF_CODE));
  expect([error.code, statusOfCode.get(error.code)]).toEqual([error.code, status]);
  // Nothing is broken here but the requests.
  expect([error.code, status < 500]).toEqual([error.code, true]);
  return { path, body, status, code: error.code, decision: null, reached_model };
}

/** Sends a batch at once and checks that the books moved by what the answers say, and by nothing else. */
async function sendBatch(account: TestAccount, batch: readonly Sent[]): Promise<Answered[]> {
  const before = await booksOf(service, account);
  const answered = await Promise.all(batch.map((sent) => send(account, sent)));
  const after = await booksOf(service, account);
  const cost_micros = answered.reduce(
    (sum, { decision }) => sum + Math.round((decision?.usage.cost_usd ?? 0) * 1e6),
    0,
  );
  const reached = answered.filter(({ reached_model }) => reached_model);
  expect(after).toEqual({
    credit_micros: before.credit_micros - cost_micros,
    held_micros: 0,
    usage_rows: before.usage_rows + reached.length,
  });
  return answered;
}

const path = fc.constantFrom('/v1/decisions' as const, '/v1/systemone' as const);
const SCHEMAS = { '/v1/decisions': DecisionRequestSchema, '/v1/systemone': SystemOneRequestSchema };
const VALUES = {
  '/v1/decisions': valuesOf(DecisionRequestSchema).map(withModel),
  '/v1/systemone': valuesOf(SystemOneRequestSchema).map(withModel),
};

/** Any text is a model to the schema; here it is the one that there is. */
function withModel(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('model' in value)) return value;
  return value.model === null ? value : { ...value, model: 'decision-1' };
}

const validRequest = path.chain((to) => VALUES[to].map((value) => ({ path: to, value })));
const changedRequest = path.chain((to) => changed(VALUES[to]).map((value) => ({ path: to, value })));

function asJson({ path: to, value }: { path: Sent['path']; value: unknown }): Sent {
  return { path: to, body: JSON.stringify(value) ?? '' };
}

function batchOf<T>(request: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(request, { minLength: BATCH, maxLength: BATCH });
}

/** The question of a request, as far as its answer must mirror it. */
function optionsAsked(question: unknown): string[] {
  if (typeof question !== 'object' || question === null || !('criteria' in question)) return [];
  const { criteria } = question;
  return typeof criteria === 'object' && criteria !== null ? Object.keys(criteria) : [];
}

function expectMirrored(value: unknown, decision: DecisionResponse): void {
  if (typeof value !== 'object' || value === null || !('questions' in value)) throw new Error('no questions');
  const asked = value.questions;
  if (typeof asked !== 'object' || asked === null) throw new Error('no questions');
  const questions: [string, unknown][] = Object.entries(asked);
  expect(Object.keys(decision.answers).sort()).toEqual(Object.keys(asked).sort());
  expect(decision.usage.decisions).toBe(questions.length);
  for (const [id, question] of questions) {
    const answer = decision.answers[id];
    if (answer !== undefined) expectOptionsMirrored(question, answer);
  }
}

function expectOptionsMirrored(question: unknown, answer: Answer): void {
  const probabilities = optionProbabilities(answer);
  if (probabilities === null) return;
  expect(Object.keys(probabilities).sort()).toEqual(optionsAsked(question).sort());
  const sum = Object.values(probabilities).reduce((total, each) => total + each, 0);
  expect(Math.abs(sum - 1)).toBeLessThan(1e-9);
  if (answer.type === 'choice') expect(optionsAsked(question)).toContain(answer.choice);
}

/** The probabilities of the options that the client sent; null for a type that has none. */
function optionProbabilities(answer: Answer): Readonly<Record<string, number>> | null {
  switch (answer.type) {
    case 'noul':
      return null;
    case 'choice':
    case 'score':
      return answer.probabilities;
  }
}

/**
 * The value as it was sent, without criteria of nouls that pass the service's checks because the model rejects them.
 */
function withoutWhatTheModelRejects(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value) ?? 'null', (_key, each: unknown) => {
    const isNoul = typeof each === 'object' && each !== null && 'type' in each && each.type === 'noul';
    if (!isNoul || !('criteria' in each)) return each;
    const { criteria } = each;
    return typeof criteria !== 'object' || Array.isArray(criteria) ? { ...each, criteria: null } : each;
  });
}

function run(name: string, batches: number) {
  return {
    numRuns: batches,
    seed: propertySeed(name),
    interruptAfterTimeLimit: 250_000,
    markInterruptAsFailure: true,
  };
}

describe('requests made from the schemas', () => {
  test('valid ones are answered: with exactly the questions and options that were asked, for what they cost', async () => {
    await fc.assert(
      fc.asyncProperty(batchOf(validRequest), async (requests) => {
        const answered = await sendBatch(paying, requests.map(asJson));
        answered.forEach(({ decision }, index) => {
          if (decision === null) throw new Error(`refused: ${JSON.stringify(requests[index])}`);
          expectMirrored(requests[index]?.value, decision);
        });
      }),
      run('fuzz valid', 1),
    );
  });

  test('valid ones pass every check up to the one that stops them', async () => {
    await fc.assert(
      fc.asyncProperty(batchOf(validRequest), async (requests) => {
        const answered = await sendBatch(barred, requests.map(asJson));
        expect(new Set(answered.map(({ code }) => code))).toEqual(new Set(['project_spend_limit']));
      }),
      run('fuzz valid, barred', 25),
    );
  });

  test('changed ones are accepted exactly when the schema accepts them', async () => {
    await fc.assert(
      fc.asyncProperty(batchOf(changedRequest), async (requests) => {
        const answered = await sendBatch(barred, requests.map(asJson));
        answered.forEach(({ code, body }, index) => {
          // The schema knows neither the models, nor the tier, nor how deeply a body may be nested.
          if (code === 'model_not_found' || code === 'too_many_questions' || code === 'invalid_request')
            return;
          const { path: to, value } = requests[index] ?? { path: '/v1/decisions', value: null };
          const isValid = Value.Check(SCHEMAS[to], withoutWhatTheModelRejects(value));
          expect([body, code === 'project_spend_limit']).toEqual([body, isValid]);
        });
      }),
      run('fuzz changed', 40),
    );
  });

  test('changed ones that are still valid are answered and paid for, the others refused and not', async () => {
    await fc.assert(
      fc.asyncProperty(batchOf(changedRequest), async (requests) => {
        await sendBatch(paying, requests.map(asJson));
      }),
      run('fuzz changed, paid', 2),
    );
  });

  test('broken bytes get an error of the one shape, whatever is broken', async () => {
    const broken = fc
      .tuple(validRequest, brokenBytes)
      .map(([request, breaks]) => ({ path: request.path, body: breaks(JSON.stringify(request.value)) }));
    await fc.assert(
      fc.asyncProperty(batchOf(broken), async (requests) => {
        await sendBatch(barred, requests);
      }),
      run('fuzz bytes', 150),
    );
  });
});

describe('single requests that should hurt', () => {
  const nested = (open: string, close: string, levels: number) =>
    `{"model":"decision-1","questions":{"q":{"type":"noul"}},"state":${open.repeat(levels)}1${close.repeat(levels)}}`;
  const HURTFUL: Readonly<Record<string, string>> = {
    '100,000 arrays in each other': nested('[', ']', 100_000),
    '100,000 objects in each other': nested('{"a":', '}', 100_000),
    '1,000,000 brackets that are never closed': '['.repeat(1_000_000),
    'a body of quotes': '"'.repeat(1_000_000),
    'a body of backslashes': `"${'\\'.repeat(1_000_000)}`,
    '20,000 questions': JSON.stringify({
      model: 'decision-1',
      state: '',
      questions: Object.fromEntries(
        Array.from({ length: 20_000 }, (_, index) => [`q${index}`, { type: 'noul' }]),
      ),
    }),
    '60,000 options': JSON.stringify({
      model: 'decision-1',
      state: '',
      questions: {
        q: {
          type: 'choice',
          criteria: Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [i, null])),
        },
      },
    }),
    'a number of a million digits': `{"model":"decision-1","state":{"n":${'9'.repeat(1_000_000)}},"questions":{"q":{"type":"noul"}}}`,
    '45,000 long numbers': `{"model":"decision-1","state":[${'12345678901234567890,'.repeat(45_000)}1],"questions":7}`,
    'the same key 45,000 times': `{${'"model":"decision-1",'.repeat(45_000)}"state":""}`,
  };

  for (const [name, body] of Object.entries(HURTFUL)) {
    test(name, async () => {
      await sendBatch(barred, [{ path: '/v1/decisions', body }]);
      await sendBatch(barred, [{ path: '/v1/systemone', body }]);
    });
  }
});

describe('headers and paths', () => {
  test('any header values and any path get an answer of our shape', async () => {
    const header = fc.oneof(
      fc.string({ maxLength: 60 }).map((value) => value.replaceAll(/[^\x21-\x7e ]/g, '').trim()),
      fc.constantFrom(
        'Bearer',
        'Bearer ',
        `Bearer ${'x'.repeat(500)}`,
        'Basic abc',
        `Bearer sk_svc_${'é'.repeat(3)}`.replaceAll('é', 'e'),
      ),
    );
    const target = fc.oneof(
      fc.webPath(),
      fc.constantFrom(
        '/v1/decisions',
        '/v1/systemone',
        '/v1/models',
        '/v1',
        '/',
        '/swagger',
        '/v1/decisions/x',
      ),
    );
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS');
    const request = fc.record({ header, key: header, target, method, query: fc.webQueryParameters() });
    await fc.assert(
      fc.asyncProperty(batchOf(request), async (requests) => {
        await Promise.all(
          requests.map(async (each) => {
            const response = await service.fetch(`${each.target === '' ? '/' : each.target}?${each.query}`, {
              method: each.method,
              headers: { authorization: each.header, 'x-api-key': each.key, accept: each.header },
            });
            expect(response.headers.get('x-request-id')).toMatch(/^req_/);
            if (response.status < 400) await response.arrayBuffer();
            else await expectAnyError(response);
            expect(response.status).toBeLessThan(500);
          }),
        );
      }),
      run('fuzz headers', 100),
    );
  });
});
