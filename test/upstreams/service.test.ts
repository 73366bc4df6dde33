import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { DecisionEngine, DecisionInput } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { addOpenModel, drainUpstream, removeModel, setModelPrice } from '../../src/catalog/changes.ts';
import type { DecisionResponse } from '../../src/decisions/schemas.ts';
import type { Question } from '../../src/questions/question.ts';
import type { UpstreamPool } from '../../src/store/catalog-records.ts';
import { estimateTokens } from '../../src/upstreams/estimate.ts';
import { expectAnyError, expectError } from '../contract/expectations.ts';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
import { RecordedLog } from '../support/problems.ts';
import { ALL_TYPES, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  EMBEDDED_MODEL,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import {
  answering,
  type Behaviour,
  echoing,
  halfAnswering,
  hanging,
  honest,
  ManualTime,
  TestMember,
  until,
  YES,
} from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const MODEL = 'kev-4b';
/** Micro-dollars a million tokens: not what the upstreams' own model costs. */
const PRICE = 2_000_000;
const CREDIT_MICROS = 25_000_000;
/** The timeout of a member that hangs. An answer takes milliseconds, because each record is read once. */
const ANSWER_MS = 5_000;

const root = mkdtempSync(join(tmpdir(), 'tds-upstreams-'));
const log = new RecordedLog();
let backs: readonly TestService[];
let back_account: TestAccount;
let members: readonly [TestMember, TestMember];
let front: TestService;
const time = new ManualTime();
/** Scores by the plan that they are of. */
const remembered = new Map<string, ReturnType<DecisionEngine['evaluate']>>();

/** Two services of one key, each behind a member that a test controls, and a service before them. */
beforeAll(async () => {
  const directories = [mkdtempSync(join(root, 'one-')), join(root, 'two')] as const;
  const first = await startTestService({ directory: directories[0] });
  back_account = await addUnlimited(first);
  await first.close();
  cpSync(directories[0], directories[1], { recursive: true });
  backs = await Promise.all(
    directories.map((directory) => startTestService({ directory, openEngine: openRemembering })),
  );
  const [one, two] = await Promise.all(backs.map(({ server }) => TestMember.start(server.address)));
  if (one === undefined || two === undefined) throw new Error('two members were started');
  members = [one, two];
  front = await startTestService({
    log: log.log,
    upstreams: { answer_ms: ANSWER_MS, trial_ms: ANSWER_MS, schedule: time.schedule },
  });
  const token_file = join(root, 'token');
  writeFileSync(token_file, back_account.key);
  await addModel(MODEL, { token_file });
});
afterAll(async () => {
  await closeAudited(front);
  for (const member of members) await member.kill();
  for (const back of backs) await closeAudited(back);
  rmSync(root, { recursive: true, force: true });
});

beforeEach(() => {
  for (const member of members) {
    member.behaviour = honest;
    member.onList = honest;
  }
});

/**
 * The embedded engine, which computes the scores of a plan once. A machine whose cores are shared could otherwise take
 * longer for an answer than one may, and members that are well would fail.
 */
function openRemembering(engine: DecisionEngine): DecisionEngine {
  return {
    ...engine,
    evaluate(plan, options) {
      const key = JSON.stringify([plan.input.mode, plan.plans]);
      const scores = remembered.get(key) ?? engine.evaluate(plan, { scope: options.scope });
      remembered.set(key, scores);
      return scores;
    },
  };
}

/** Lets time pass for the service, and for the looks of its pools. */
function pass(duration_ms: number): void {
  front.clock.advance(duration_ms);
  time.advance(duration_ms);
}

async function addModel(id: string, changes: Partial<UpstreamPool> = {}): Promise<void> {
  await addOpenModel(
    front.accounts,
    OPERATOR,
    {
      id,
      kind: 'decision',
      description: 'Answers elsewhere.',
      context_tokens: 16_384,
      input_price_micros_per_million_tokens: PRICE,
    },
    {
      upstreams: {
        protocol: 'systemone',
        addresses: members.map(({ address }) => address),
        draining: [],
        model: null,
        token_file: null,
        ca_file: null,
        ...changes,
      },
    },
  );
}

async function addUnlimited(service: TestService): Promise<TestAccount> {
  const account = await addAccount(service, { credit_dollars: CREDIT_MICROS / 1_000_000 });
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, {
    minimum_tier: 2,
    requests_per_minute: 1_000_000,
    tokens_per_minute: 1_000_000_000,
  });
  return account;
}

/** The decision in a response, which must be one. */
async function decisionIn(response: Response): Promise<DecisionResponse> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text);
}

/** Asks the first upstream itself. */
async function directly(body: object): Promise<DecisionResponse> {
  const [back] = backs;
  if (back === undefined) throw new Error('there is no upstream');
  return await decisionIn(await post(back, back_account.key, { ...body, model: 'decision-1' }));
}

async function through(key: string, body: object): Promise<DecisionResponse> {
  return await decisionIn(await post(front, key, { ...body, model: MODEL }));
}

const costOf = (tokens: number) => Math.ceil((tokens * PRICE) / 1_000_000);

const word = fc.constantFrom('refund', 'order', 'late', 'broken', 'thanks', 'ünïcode', '8812', '🙂');
const sentence = fc.array(word, { minLength: 1, maxLength: 30 }).map((words) => words.join(' '));
const asked = fc.oneof(
  fc.record({ type: fc.constant('noul'), instructions: sentence, threshold: fc.constant(0.5) }),
  fc.record({
    type: fc.constant('noul'),
    instructions: sentence,
    criteria: fc.record({ true: sentence, false: sentence }),
  }),
  fc.record({
    type: fc.constant('choice'),
    instructions: sentence,
    criteria: fc.dictionary(word, sentence, { minKeys: 2, maxKeys: 5, noNullPrototype: true }),
  }),
  fc.record({
    type: fc.constant('score'),
    instructions: sentence,
    criteria: fc.array(sentence, { minLength: 2, maxLength: 5 }),
  }),
);
const body = fc.record({
  state: fc.oneof(sentence, fc.record({ subject: sentence, amount: fc.integer() }), fc.array(sentence)),
  questions: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), asked, {
    minKeys: 1,
    maxKeys: 4,
    noNullPrototype: true,
  }),
});

describe('a request through upstreams', () => {
  test('has the answers and the tokens of the upstream itself, at the price of this service', async () => {
    const account = await addUnlimited(front);
    let charged_micros = 0;
    await fc.assert(
      fc.asyncProperty(body, async (request) => {
        const expected = await directly(request);
        const answer = await through(account.key, request);
        expect(answer.answers).toEqual(expected.answers);
        expect(answer.model).toBe(MODEL);
        expect(answer.usage).toEqual({
          ...expected.usage,
          cost_usd: costOf(expected.usage.input_tokens) / 1_000_000,
        });
        charged_micros += costOf(expected.usage.input_tokens);
      }),
      { numRuns: 12 },
    );
    expect(await booksOf(front, account)).toMatchObject({
      credit_micros: CREDIT_MICROS - charged_micros,
      held_micros: 0,
    });
  });

  test('in consistent mode asks each question alone, in both orders, and gives the mean; the first order is billed', async () => {
    const account = await addUnlimited(front);
    const request = { ...SMALL_REQUEST, mode: 'consistent', questions: ALL_TYPES };
    const together = await through(account.key, request);
    const { refund, team, urgency } = ALL_TYPES;
    const alone = (question: object) => directly({ ...SMALL_REQUEST, questions: { q: question } });
    const yes = await alone(refund);
    const forward = await alone(team);
    const backward = await alone({
      ...team,
      criteria: Object.fromEntries(Object.entries(team.criteria).toReversed()),
    });
    const up = await alone(urgency);
    const down = await alone({ ...urgency, criteria: urgency.criteria.toReversed() });

    expect(together.answers.refund).toEqual(yes.answers.q);
    for (const option of Object.keys(team.criteria)) {
      const mean = (probabilityOf(forward, option) + probabilityOf(backward, option)) / 2;
      expect(probabilityOf(together, option, 'team')).toBeCloseTo(mean, 5);
    }
    for (const level of urgency.criteria.keys()) {
      const mirrored = urgency.criteria.length - 1 - level;
      const mean = (probabilityOf(up, String(level)) + probabilityOf(down, String(mirrored))) / 2;
      expect(probabilityOf(together, String(level), 'urgency')).toBeCloseTo(mean, 5);
    }
    const input_tokens = [yes, forward, up].reduce((sum, { usage }) => sum + usage.input_tokens, 0);
    expect(together.usage.input_tokens).toBe(input_tokens);
    expect(together.usage.cost_usd).toBe(costOf(input_tokens) / 1_000_000);

    // No other question of a request changes an answer.
    const single = await through(account.key, { ...request, questions: { team } });
    expect(single.answers.team).toEqual(together.answers.team);
  });

  test('says how much of the record upstreams did not read: the most of its calls, and nothing where they say nothing', async () => {
    const account = await addUnlimited(front);
    const noul = { type: 'noul', instructions: 'Is it late?' };
    const questions = { a: noul, b: noul, c: noul };
    const request = { model: MODEL, mode: 'consistent', state: 'late', questions };
    const leftOut = async () => {
      const response = await post(front, account.key, request);
      expect(response.status).toBe(200);
      return response.headers.get('tds-record-tokens-left-out');
    };
    expect(await leftOut()).toBeNull();
    const unread = ['5', '912', '7'].values();
    for (const member of members) {
      member.behaviour = (...received) =>
        answering(200, YES, { 'tds-record-tokens-left-out': unread.next().value ?? '0' })(...received);
    }
    expect(await leftOut()).toBe('912');
  });

  test('sends the upstream no id of the client, and no model where the pool names none', async () => {
    const account = await addUnlimited(front);
    const before = members.flatMap(({ received }) => received).length;
    await through(account.key, { ...SMALL_REQUEST, questions: { 'private-id': ALL_TYPES.refund } });
    const sent = members.flatMap(({ received }) => received);
    expect(sent.length).toBeGreaterThan(before);
    const own = sent.filter(({ body: text }) => text.includes('8812'));
    expect(own.length).toBeGreaterThan(0);
    for (const { body: text } of sent) {
      expect(text).not.toContain('private-id');
      expect(text).not.toContain('"model"');
    }
  });

  test('costs what its row says from the next request on, and is 404 when it is removed', async () => {
    const account = await addUnlimited(front);
    await addModel('passing', { token_file: join(root, 'token') });
    const request = { ...SMALL_REQUEST, model: 'passing' };
    const first = await decisionIn(await post(front, account.key, request));
    await setModelPrice(front.accounts, OPERATOR, 'passing', 2 * PRICE);
    const second = await decisionIn(await post(front, account.key, request));
    expect(second.usage.cost_usd).toBeCloseTo(2 * first.usage.cost_usd, 9);
    await removeModel(front.accounts, OPERATOR, 'passing');
    expect((await post(front, account.key, request)).status).toBe(404);
  });
});

function probabilityOf({ answers }: DecisionResponse, option: string, id = 'q'): number {
  const answer = answers[id];
  const probability =
    answer !== undefined && 'probabilities' in answer ? answer.probabilities[option] : undefined;
  if (probability === undefined) throw new Error(`there is no probability of ${option}`);
  return probability;
}

describe('what is held', () => {
  test('covers what the embedded model reads, of any request', async () => {
    const planner = await EMBEDDED_MODEL.planner();
    const text = fc.oneof(sentence, fc.string({ maxLength: 60, unit: 'binary' }));
    const question: fc.Arbitrary<Question> = fc.oneof(
      fc.record({
        type: fc.constant('noul' as const),
        instructions: text,
        yes: text,
        no: fc.constant(undefined),
      }),
      fc.record({
        type: fc.constant('choice' as const),
        instructions: text,
        options: fc.uniqueArray(fc.record({ id: text, description: fc.option(text) }), {
          selector: ({ id }) => id,
          minLength: 2,
          maxLength: 20,
        }),
      }),
      fc.record({
        type: fc.constant('score' as const),
        instructions: text,
        levels: fc.array(text, { minLength: 2, maxLength: 20 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(text, fc.array(question, { minLength: 1, maxLength: 8 }), async (state, questions) => {
        const input: DecisionInput = { state, questions, mode: 'fast' };
        const { input_tokens } = await planner.plan(input);
        const bytes = Buffer.byteLength(JSON.stringify(state));
        expect(estimateTokens(bytes, questions, 16_384).most).toBeGreaterThanOrEqual(input_tokens);
      }),
      { numRuns: 100 },
    );
  });

  test('is refused where the credit does not cover it, and no upstream sees the record', async () => {
    const account = await addAccount(front, { credit_dollars: 0.0005, tier: 1 });
    const before = members.flatMap(({ received }) => received).length;
    const response = await post(front, account.key, {
      ...SMALL_REQUEST,
      model: MODEL,
      state: 'Zq-poor-Zq '.repeat(200),
    });
    expect([response.status, await response.json()]).toMatchObject([
      402,
      { error: { code: 'insufficient_credit' } },
    ]);
    const seen = members.flatMap(({ received }) => received).slice(before);
    expect(seen.filter(({ body: text }) => text.includes('Zq-poor-Zq'))).toEqual([]);
  });
});

describe('faults of upstreams', () => {
  const RECORDS = Array.from({ length: 6 }, (_, index) => `Order ${index} came late and broken.`);
  const FAULTS: readonly Behaviour[] = [
    hanging,
    halfAnswering,
    echoing,
    answering(200, '{"answers":{"q1":{"type":"noul","noul":0.9}},"usage":{"input_tokens":5}}'),
    answering(200, 'no json'),
    answering(429, '{}', { 'retry-after': '1' }),
    async (received, response, forward) => {
      // Slow, and then right.
      await new Promise((resolve) => setTimeout(resolve, 50));
      return honest(received, response, forward);
    },
  ];

  test('every answer is right and charged exactly once, nothing else is charged, and all recovers', async () => {
    const accounts = [await addUnlimited(front), await addUnlimited(front), await addUnlimited(front)];
    const expected = await Promise.all(RECORDS.map((state) => directly({ state, questions: ALL_TYPES })));
    const charged_micros = accounts.map(() => 0);
    const answered = accounts.map(() => 0);
    const statuses = new Map<number, number>();
    const random = fc.sample(fc.nat(), { numRuns: 400, seed: 18 });
    let requests = 0;

    const client = async (account_index: number) => {
      const account = accounts[account_index];
      if (account === undefined) throw new Error('there is no such account');
      while (requests < 240) {
        const number = requests++;
        await misbehave(number, random[number] ?? 0);
        const record = number % RECORDS.length;
        const response = await post(front, account.key, {
          model: MODEL,
          state: RECORDS[record],
          questions: ALL_TYPES,
        });
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        if (response.status !== 200) {
          const { code } = (await expectAnyError(response)).error;
          expect(['model_unavailable', 'model_warming_up']).toContain(code);
          continue;
        }
        const answer = await decisionIn(response);
        expect<unknown>(answer.answers).toEqual(expected[record]?.answers);
        answered[account_index] = (answered[account_index] ?? 0) + 1;
        charged_micros[account_index] =
          (charged_micros[account_index] ?? 0) + Math.round(answer.usage.cost_usd * 1_000_000);
      }
    };
    /** Now and then one member begins or ceases to fail, is killed, or comes back. */
    const misbehave = async (number: number, chance: number) => {
      const member = members[number % 32 < 16 ? 0 : 1];
      if (number % 16 === 0) member.behaviour = FAULTS[chance % FAULTS.length] ?? honest;
      if (number % 16 === 8) member.behaviour = honest;
      if (number % 64 === 40) await members[1].kill();
      if (number % 64 === 52) await members[1].revive();
      // The rests of the breakers pass faster than the requests.
      if (number % 4 === 0) pass(1_000);
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => client(index % accounts.length)));

    for (const member of members) {
      member.behaviour = honest;
      await member.kill();
      await member.revive();
    }
    const [account] = accounts;
    if (account === undefined) throw new Error('there is an account');
    let last = 0;
    while (last !== 200) {
      // The rests of the breakers.
      pass(1_000);
      const response = await post(front, account.key, {
        model: MODEL,
        state: RECORDS[0],
        questions: ALL_TYPES,
      });
      last = response.status;
      if (last !== 200) {
        await response.text();
        continue;
      }
      answered[0] = (answered[0] ?? 0) + 1;
      const { usage } = await decisionIn(response);
      charged_micros[0] = (charged_micros[0] ?? 0) + Math.round(usage.cost_usd * 1_000_000);
    }

    // The faults did happen, and did not stop everything.
    expect(statuses.get(200) ?? 0).toBeGreaterThan(100);
    expect([...statuses.keys()].filter((status) => ![200, 502, 503].includes(status))).toEqual([]);
    for (const [index, each] of accounts.entries()) {
      expect(await booksOf(front, each)).toMatchObject({
        credit_micros: CREDIT_MICROS - (charged_micros[index] ?? 0),
        held_micros: 0,
      });
      const rows = await usageOf(front, each);
      expect(rows.filter(({ status }) => status === 200)).toHaveLength(answered[index] ?? 0);
      expect(rows.filter(({ status, cost_micros }) => status !== 200 && cost_micros !== 0)).toEqual([]);
    }
  });

  test('a member that is drained gets nothing from the next request on, and again when that ends', async () => {
    const account = await addUnlimited(front);
    await untilBothAnswer(account);
    const [one, two] = members;
    await drainUpstream(front.accounts, OPERATOR, MODEL, { address: one.address, is_draining: true });
    const before = [one.received.length, two.received.length];
    for (let request = 0; request < 4; request++) await through(account.key, SMALL_REQUEST);
    expect([one.received.length, two.received.length]).toEqual([before[0] ?? 0, (before[1] ?? 0) + 4]);
    await drainUpstream(front.accounts, OPERATOR, MODEL, { address: one.address, is_draining: false });
    // After its trial, which takes a while.
    await until(async () => {
      await through(account.key, { ...SMALL_REQUEST, state: 'Are you back?' });
      return one.received.at(-1)?.body.includes('Are you back?') === true;
    });
  });

  test('without a member the model is unavailable and nothing is charged; the embedded model answers on', async () => {
    const account = await addUnlimited(front);
    for (const member of members) await member.kill();
    for (let request = 0; request < 4; request++) {
      await expectError(
        await post(front, account.key, { ...SMALL_REQUEST, model: MODEL }),
        'model_unavailable',
      );
    }
    expect(await booksOf(front, account)).toMatchObject({ credit_micros: CREDIT_MICROS, held_micros: 0 });
    expect((await post(front, account.key, SMALL_REQUEST)).status).toBe(200);
    expect((await front.fetch('/readyz')).status).toBe(200);
    for (const member of members) await member.revive();
    await untilBothAnswer(account);
  });

  test('a client that leaves frees its hold, and the upstream’s too', async () => {
    const account = await addUnlimited(front);
    await untilBothAnswer(account);
    const { credit_micros } = await booksOf(front, account);
    for (const member of members) member.behaviour = hanging;
    const leave = new AbortController();
    const request = front
      .fetch('/v1/decisions', {
        method: 'POST',
        headers: { authorization: `Bearer ${account.key}` },
        body: JSON.stringify({ ...SMALL_REQUEST, model: MODEL }),
        signal: leave.signal,
      })
      .catch(() => null);
    await until(async () => (await booksOf(front, account)).held_micros > 0);
    leave.abort();
    await request;
    await until(async () => (await booksOf(front, account)).held_micros === 0);
    expect((await booksOf(front, account)).credit_micros).toBe(credit_micros);
  });

  test('no word of a record reaches the log, a problem or the disk, even where an upstream repeats it', async () => {
    const marker = `Xq${crypto.randomUUID().replaceAll('-', '')}Zv`;
    const account = await addUnlimited(front);
    await untilBothAnswer(account);
    const request = {
      model: MODEL,
      state: `${marker} is the record`,
      questions: {
        [marker]: { type: 'choice', instructions: marker, criteria: { [marker]: marker, b: null } },
      },
    };
    const repeating: Behaviour = (received, response, forward) =>
      answering(200, JSON.stringify({ answers: { [received.body]: received.body } }))(
        received,
        response,
        forward,
      );
    for (const behaviour of [
      echoing,
      repeating,
      answering(400, marker),
      answering(200, marker),
      halfAnswering,
    ]) {
      await untilBothAnswer(account);
      for (const member of members) member.behaviour = behaviour;
      const response = await post(front, account.key, request);
      expect([422, 502]).toContain(response.status);
      expect(await response.text()).not.toContain(marker.slice(2, -2).repeat(2));
      for (const member of members) member.behaviour = honest;
    }
    const problems = await log.problems();
    expect(problems.length).toBeGreaterThan(0);
    expect(JSON.stringify(front.service.services.problems.recent())).not.toContain(marker);
    expect(log.text).not.toContain(marker);
    expect(log.text).not.toContain(back_account.key);
    for (const name of readdirSync(front.directory)) {
      const content = readFileSync(join(front.directory, name));
      expect([name, content.includes(marker), content.includes(back_account.key)]).toEqual([
        name,
        false,
        false,
      ]);
    }
  });

  /** Brings the members back, as time passes. */
  async function untilBothAnswer(account: TestAccount): Promise<void> {
    for (const member of members) {
      while (member.received.at(-1)?.body.includes(PROBE) !== true) {
        pass(5_000);
        await (await post(front, account.key, { ...SMALL_REQUEST, model: MODEL, state: PROBE })).text();
      }
    }
  }
});

const PROBE = 'Are you there?';
