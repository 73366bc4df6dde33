import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DecisionPlanner, openEngine, openPlanner, verifyWeights } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { DEFAULT_MODEL, type DecisionModelEntry } from '../../src/catalog/catalog.ts';
import { addOpenModel, removeModel, setModelPrice } from '../../src/catalog/changes.ts';
import { inputCost_micros } from '../../src/contract/money.ts';
import { engineInput } from '../../src/decisions/answer-request.ts';
import { parseDecisionRequest } from '../../src/decisions/request.ts';
import { Refusal } from '../../src/errors/errors.ts';
import { isJsonObject } from '../../src/json/json-value.ts';
import { readJson } from '../../src/json/read-json.ts';
import { followCatalog } from '../../src/served-models/follow-catalog.ts';
import type { ModelWeights } from '../../src/store/catalog-records.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_CHAT, TINY_MARKERS } from '../native/support/models.ts';
import { eventually } from '../support/eventually.ts';
import { Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
import { RecordedLog } from '../support/problems.ts';
import { ALL_TYPES, post } from '../support/requests.ts';
import {
  addAccount,
  lifecycleOf,
  MODEL_TEST_TIMEOUT_MS,
  POLL_MS,
  startTestService,
  stateOf,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const SECOND = 'decision-2';
/** Of which one organization may have half. */
const QUEUE_LIMIT = 64;
const PRICES = { [DEFAULT_MODEL]: 500_000, [SECOND]: 3_000_000 } as const;
type Model = keyof typeof PRICES;

const costOf = (tokens: number, price: number) =>
  inputCost_micros({ input_price_micros_per_million_tokens: price }, tokens);

/** A model without anything in common with decision-1 but the bytes: another vocabulary, profile and weights. */
const OTHER = { ...TINY_CHAT, seed: 12 };

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: TestService;
const recorded = new RecordedLog();
const planner_events: string[] = [];
/** The gates that the next evaluations of a model wait for. */
const gates = new Map<string, Gate>();
/** The gates that the next reads of a model's vocabulary wait for. */
const vocabulary_gates = new Map<string, Gate>();
/** The scores that a model's engine gave, by model and record. */
const scores = new Map<string, unknown>();

const file = (name: string) => join(directory.path, `${name}.gguf`);

/** The generated models in the place of the weights that the rows name, opened as a server opens them. */
async function plannerOf(model: DecisionModelEntry): Promise<DecisionPlanner> {
  const { id, weights, context_tokens } = model;
  await vocabulary_gates.get(id)?.pass();
  const model_path = id === DEFAULT_MODEL ? file(id) : weights;
  const planner = await openPlanner({ model_path, expected: model, context_tokens, gpu: false, threads: 1 });
  planner_events.push(`open ${id}`);
  return {
    plan: (input) => planner.plan(input),
    async openEngine() {
      const engine = intercepted(await planner.openEngine(), async (run, { scope }) => {
        if (scope !== 'warm-up') await gates.get(id)?.pass();
        return await run();
      });
      return {
        ...engine,
        async evaluate(plan, options) {
          const given = await engine.evaluate(plan, options);
          scores.set(`${id} ${plan.input.state}`, given);
          return given;
        },
      };
    },
    async close() {
      planner_events.push(`close ${id}`);
      await planner.close();
    },
  };
}

async function weightsOf(path: string): Promise<ModelWeights> {
  return { weights: path, weights_sha256: (await verifyWeights(path)).sha256, profile: null };
}

async function addToCatalog(id: string, weights: ModelWeights, price_micros: number = PRICES[SECOND]) {
  const model = { id, kind: 'decision', description: 'Another model.', context_tokens: 2_048 } as const;
  await addOpenModel(
    service.accounts,
    OPERATOR,
    { ...model, input_price_micros_per_million_tokens: price_micros },
    weights,
  );
}

beforeAll(async () => {
  directory = await temporaryDirectory();
  await writeTinyModel(file(DEFAULT_MODEL), { ...TINY_MARKERS, seed: 11 });
  await writeTinyModel(file(SECOND), OTHER);
  service = await startTestService({ openPlanner: plannerOf, log: recorded.log, queue_limit: QUEUE_LIMIT });
  await addToCatalog(SECOND, await weightsOf(file(SECOND)));
});
afterAll(async () => {
  await closeAudited(service);
  expect(planner_events.filter((event) => event.startsWith('close')).sort()).toEqual(
    planner_events
      .filter((event) => event.startsWith('open'))
      .map((event) => event.replace('open', 'close'))
      .sort(),
  );
  await directory[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const opened of [gates, vocabulary_gates]) {
    for (const gate of opened.values()) gate.open();
    opened.clear();
  }
});

async function unlimitedAccount(): Promise<TestAccount> {
  const account = await addAccount(service);
  const limits = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000 };
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, limits);
  return account;
}

const bodyOf = (model: string, state: string, mode = 'fast') => ({
  model,
  state,
  mode,
  questions: ALL_TYPES,
});
const askOf = ({ key }: TestAccount, ...request: Parameters<typeof bodyOf>) =>
  post(service, key, bodyOf(...request));

interface Evaluated {
  readonly input_tokens: number;
  readonly scores: unknown;
}

/** Resolves with the results of the weights at a path for requests without other load. */
async function alone(path: string, bodies: readonly object[]): Promise<Evaluated[]> {
  const engine = await openEngine({ model_path: path, context_tokens: 2_048, gpu: false, threads: 1 });
  try {
    const results: Evaluated[] = [];
    for (const body of bodies) {
      const json = readJson(JSON.stringify(body));
      const request = isJsonObject(json) ? parseDecisionRequest(json, null, 32) : null;
      if (request === null || request instanceof Refusal) throw new Error('not a request');
      const plan = await engine.plan(engineInput(request));
      results.push({
        input_tokens: plan.input_tokens,
        scores: await engine.evaluate(plan, { scope: 'alone' }),
      });
    }
    return results;
  } finally {
    await engine.close();
  }
}

test('requests to two models at once: each answer is that of its own engine alone, by a single bit, at its own price', async () => {
  const account = await unlimitedAccount();
  const models: readonly Model[] = [DEFAULT_MODEL, SECOND];
  const records = Array.from(
    { length: 12 },
    (_, index) => `Order ${index}: ${'the parcel is late. '.repeat(index)}`,
  );
  // Both are ready for both modes first.
  await expectDecision(await askOf(account, SECOND, 'Hello.'));
  await eventually(() => stateOf(service.service, SECOND) === 'ready');
  const before = await booksOf(service, account);
  const asked = records.flatMap((state, index) =>
    models.map((model) => ({ model, state, body: bodyOf(model, state, index % 2 ? 'consistent' : 'fast') })),
  );
  const decisions = await Promise.all(
    asked.map(async ({ body }) => await expectDecision(await post(service, account.key, body))),
  );

  let charged_micros = 0;
  for (const model of models) {
    const own = asked.filter((request) => request.model === model);
    const expected = await alone(
      file(model),
      own.map(({ body }) => body),
    );
    const found = own.map((request) => {
      const decision = decisions[asked.indexOf(request)];
      if (decision === undefined) throw new Error('not answered');
      const { input_tokens, cost_usd } = decision.usage;
      expect(decision.model).toBe(model);
      expect(cost_usd).toBe(costOf(input_tokens, PRICES[model]) / 1e6);
      charged_micros += costOf(input_tokens, PRICES[model]);
      return { input_tokens, scores: scores.get(`${model} ${request.state}`) };
    });
    expect(found).toEqual(expected);
  }
  // They have nothing in common: what one answers is not what the other does.
  for (const state of records)
    expect(scores.get(`${DEFAULT_MODEL} ${state}`)).not.toEqual(scores.get(`${SECOND} ${state}`));
  expect(before.credit_micros - (await booksOf(service, account)).credit_micros).toBe(charged_micros);
  const rows = (await usageOf(service, account)).slice(1);
  expect(rows.map(({ model }) => model).sort()).toEqual(asked.map(({ model }) => model).sort());
});

test('a broken model: 502 for itself only, its problems name it, and nothing is charged', async () => {
  const account = await unlimitedAccount();
  const { credit_micros } = await booksOf(service, account);
  const weights = { weights: file('missing'), weights_sha256: null, profile: null };
  await addToCatalog('decision-broken', weights);
  const [broken, first, second] = await Promise.all([
    askOf(account, 'decision-broken', 'a'),
    askOf(account, DEFAULT_MODEL, 'a'),
    askOf(account, SECOND, 'a'),
  ]);
  await expectError(broken, 'model_unavailable');
  const cost_usd =
    (await expectDecision(first)).usage.cost_usd + (await expectDecision(second)).usage.cost_usd;
  expect(credit_micros - (await booksOf(service, account)).credit_micros).toBe(Math.round(cost_usd * 1e6));
  const request_id = broken.headers.get('x-request-id');
  const problems = (await recorded.problems()).filter((line) => line.request_id === request_id);
  expect(problems).toMatchObject([{ step: 'plan', code: 'model_unavailable', model: 'decision-broken' }]);
  expect(JSON.stringify(problems)).toContain('is missing');
  await removeModel(service.accounts, OPERATOR, 'decision-broken');
});

test('a file that is another one than was added is not served; put back, it is', async () => {
  const account = await unlimitedAccount();
  const path = file('replaced');
  await writeTinyModel(path, OTHER);
  await addToCatalog('decision-replaced', await weightsOf(path));
  await writeTinyModel(path, { ...OTHER, seed: 13 });
  const refused = await askOf(account, 'decision-replaced', 'a');
  await expectError(refused, 'model_unavailable');
  const request_id = refused.headers.get('x-request-id');
  const problems = (await recorded.problems()).filter((line) => line.request_id === request_id);
  expect(problems).toMatchObject([{ model: 'decision-replaced' }]);
  expect(JSON.stringify(problems)).toContain('are others than when the model was added');
  await writeTinyModel(path, OTHER);
  await expectDecision(await askOf(account, 'decision-replaced', 'a'));
  await removeModel(service.accounts, OPERATOR, 'decision-replaced');
});

test('the start loads every model: one that cannot be loaded is reported and stops nothing but itself', async () => {
  const weights = { weights: file('missing'), weights_sha256: null, profile: null };
  await addToCatalog('decision-0', weights);
  await copyFile(file(SECOND), file('third'));
  await addToCatalog('decision-3', await weightsOf(file('third')));
  await service.service.loadModels();
  while (service.service.services.models.lifecycle('decision-3')?.status().state !== 'ready')
    await Bun.sleep(POLL_MS);
  const problems = (await recorded.problems()).filter(({ model }) => model === 'decision-0');
  expect(problems).toMatchObject([{ step: 'model_load', request_id: null }]);
  expect(lifecycleOf(service.service, 'decision-0').status()).toMatchObject({ state: 'cold' });
  for (const id of ['decision-0', 'decision-3']) await removeModel(service.accounts, OPERATOR, id);
  await followCatalog(service.service.services);
  expect(service.service.services.models.states().map(({ id }) => id)).toEqual([DEFAULT_MODEL, SECOND]);
});

test('a price holds from the next request on; one that is being answered keeps the price before', async () => {
  const account = await unlimitedAccount();
  const gate = new Gate();
  gates.set(SECOND, gate);
  const before = askOf(account, SECOND, 'a');
  await gate.reached;
  await setModelPrice(service.accounts, OPERATOR, SECOND, 7_000_000);
  gates.clear();
  const after = await expectDecision(await askOf(account, SECOND, 'a'));
  expect(after.usage.cost_usd).toBe(costOf(after.usage.input_tokens, 7_000_000) / 1e6);
  gate.open();
  const { usage } = await expectDecision(await before);
  expect(usage.cost_usd).toBe(costOf(usage.input_tokens, PRICES[SECOND]) / 1e6);
  await setModelPrice(service.accounts, OPERATOR, SECOND, PRICES[SECOND]);
});

test('each model has a queue of its own: a full one refuses nobody at the other', async () => {
  const account = await unlimitedAccount();
  const gate = new Gate();
  gates.set(SECOND, gate);
  const waiting = Array.from({ length: QUEUE_LIMIT / 2 }, () => askOf(account, SECOND, 'a'));
  await gate.reached;
  await eventually(() => openHolds(account) >= QUEUE_LIMIT / 2);
  const refused = await askOf(account, SECOND, 'a');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  const { error } = await expectError(refused, 'model_unavailable');
  expect(error.message).toContain('Too many requests');
  await expectDecision(await askOf(account, DEFAULT_MODEL, 'a'));
  gate.open();
  for (const response of await Promise.all(waiting)) await expectDecision(response);
});

function openHolds({ organization_id }: TestAccount): number {
  const row = service.db.$client
    .query<{ open_holds: number }, [string]>('SELECT open_holds FROM organizations WHERE id = ?')
    .get(organization_id);
  return row?.open_holds ?? 0;
}

test('consistent mode warms up for each model: 503 at the cold one, and the other answers', async () => {
  const account = await unlimitedAccount();
  const path = file('cold');
  await copyFile(file(SECOND), path);
  await addToCatalog('decision-cold', await weightsOf(path));
  const refused = await askOf(account, 'decision-cold', 'a', 'consistent');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  await expectError(refused, 'model_warming_up');
  await expectDecision(await askOf(account, DEFAULT_MODEL, 'a', 'consistent'));
  await eventually(() => stateOf(service.service, 'decision-cold') === 'ready');
  await expectDecision(await askOf(account, 'decision-cold', 'a', 'consistent'));
  await removeModel(service.accounts, OPERATOR, 'decision-cold');
});

test('requests that wait for the vocabulary of a model have no slot, and keep nobody from the other models', async () => {
  const account = await unlimitedAccount();
  const id = 'decision-unread';
  await copyFile(file(SECOND), file(id));
  await addToCatalog(id, await weightsOf(file(id)));
  const gate = new Gate();
  vocabulary_gates.set(id, gate);
  const { planning, unplanned_bodies } = service.service.services;
  const record = 'x'.repeat(1_000);
  const waiting = Array.from({ length: 5 }, () => askOf(account, id, record));
  await gate.reached;
  await eventually(() => unplanned_bodies.taken_bytes >= waiting.length * record.length);
  // All four slots are free.
  const slots = await Promise.all(Array.from({ length: 4 }, () => planning.take(account.organization_id)));
  for (const slot of slots) slot[Symbol.dispose]();
  await expectDecision(await askOf(account, DEFAULT_MODEL, 'a'));
  gate.open();
  for (const response of await Promise.all(waiting)) await expectDecision(response);
  await removeModel(service.accounts, OPERATOR, id);
});

test('a removed model finishes its requests, is found no more, and is closed; another of its id is its own', async () => {
  const account = await unlimitedAccount();
  const id = 'decision-removed';
  await copyFile(file(SECOND), file('removed'));
  await addToCatalog(id, await weightsOf(file('removed')));
  const gate = new Gate();
  gates.set(id, gate);
  const answer = askOf(account, id, 'a');
  await gate.reached;
  await removeModel(service.accounts, OPERATOR, id);
  await followCatalog(service.service.services);
  await expectError(await askOf(account, id, 'a'), 'model_not_found', 'model');
  expect(planner_events).not.toContain(`close ${id}`);

  // Its id is given to other weights while the request still waits.
  gates.clear();
  await addToCatalog(id, await weightsOf(file(DEFAULT_MODEL)), 1_000_000);
  const next = await expectDecision(await askOf(account, id, 'b'));
  expect(planner_events.filter((event) => event.endsWith(id))).toEqual([`open ${id}`, `open ${id}`]);
  gate.open();
  const decision = await expectDecision(await answer);
  expect(decision.usage.cost_usd).toBe(costOf(decision.usage.input_tokens, PRICES[SECOND]) / 1e6);
  await eventually(() => planner_events.includes(`close ${id}`));

  const answered = [
    { input_tokens: decision.usage.input_tokens, scores: scores.get(`${id} a`) },
    { input_tokens: next.usage.input_tokens, scores: scores.get(`${id} b`) },
  ];
  expect(answered).toEqual([
    ...(await alone(file(SECOND), [bodyOf(id, 'a')])),
    ...(await alone(file(DEFAULT_MODEL), [bodyOf(id, 'b')])),
  ]);
  expect((await usageOf(service, account)).map(({ model, status }) => [model, status])).toEqual([
    [id, 200],
    [id, 200],
  ]);
  await removeModel(service.accounts, OPERATOR, id);
});
