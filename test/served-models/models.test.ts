import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { type DecisionInput, type DecisionPlanner, openPlanner, WeightsError } from '../../native/engine.ts';
import type { DecisionModelEntry } from '../../src/catalog/catalog.ts';
import type { Problem } from '../../src/problems/problems.ts';
import { ModelUnavailable } from '../../src/served-models/model-answerer.ts';
import { Models, type ModelsOptions } from '../../src/served-models/models.ts';
import { systemClock } from '../../src/time/clock.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(path, TINY_MARKERS);
});
afterAll(() => directory[Symbol.asyncDispose]());

const INPUT: DecisionInput = {
  state: 'on',
  questions: [{ type: 'noul', instructions: 'on?', yes: undefined, no: undefined }],
  mode: 'fast',
};

/** A row with the generated weights. */
function row(id: string, changes: Partial<DecisionModelEntry> = {}): DecisionModelEntry {
  const price = { input_price_micros_per_million_tokens: 1 };
  return {
    id,
    weights: path,
    weights_sha256: null,
    profile: null,
    context_tokens: 256,
    ...price,
    ...changes,
  };
}

/** Models on real planners, with what was opened and closed, in order, and what was reported. */
function world(options: Partial<ModelsOptions> = {}) {
  const events: string[] = [];
  const problems: Problem[] = [];
  const models = new Models({
    async openPlanner(model) {
      const { id, weights, context_tokens } = model;
      const planner = await openPlanner({ model_path: weights, context_tokens, gpu: false, threads: 1 });
      events.push(`open ${id}`);
      return {
        plan: (input) => planner.plan(input),
        openEngine: () => planner.openEngine(),
        async close() {
          events.push(`close ${id}`);
          await planner.close();
        },
      };
    },
    openUpstreams: () => {
      throw new Error('no model here has upstreams');
    },
    queue_limit: 4,
    idle_unload_ms: 0,
    clock: systemClock,
    problems: { report: (problem) => problems.push(problem) },
    ...options,
  });
  return { models, events, problems };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a row keeps its life through changes of its price, and gets another one with other weights or context', async () => {
  const { models, events } = world();
  const lifeOf = (model: DecisionModelEntry) => {
    models.for(model)[Symbol.dispose]();
    return models.lifecycle(model.id);
  };
  const first = lifeOf(row('a'));
  expect(lifeOf(row('a', { input_price_micros_per_million_tokens: 2 }))).toBe(first);
  const changes = [
    { context_tokens: 128 },
    { weights: 'elsewhere.gguf' },
    { weights_sha256: 'x' },
    { profile: 'y' },
  ];
  for (const change of changes) {
    expect(lifeOf(row('a'))).not.toBe(lifeOf(row('a', change)));
  }
  expect(lifeOf(row('b'))).not.toBe(lifeOf(row('a')));
  // None of them was asked for anything, so nothing was opened.
  expect(events).toEqual([]);
  await models.close();
});

test('a model that is gone is closed once, after the last request that asked for it, whatever was asked of it', async () => {
  const { models, events } = world();
  models.follow([row('a'), row('b')]);
  expect(models.states()).toEqual([
    { id: 'a', state: 'cold', load_error: undefined },
    { id: 'b', state: 'cold', load_error: undefined },
  ]);
  const planned = models.for(row('a'));
  const plan = await planned.plan(INPUT);
  const waiting = models.for(row('a'));
  models.follow([row('b')]);
  expect(models.states().map(({ id }) => id)).toEqual(['b']);
  expect(models.lifecycle('a')).toBeUndefined();
  waiting[Symbol.dispose]();
  waiting[Symbol.dispose]();
  // An earlier plan is answered by an engine that is loaded for it.
  const evaluate = async () => (await planned.answer(plan, { scope: 'test' })).scores;
  expect(await evaluate()).toEqual(await evaluate());
  expect(events).toEqual(['open a']);
  planned[Symbol.dispose]();
  while (events.length === 1) await turn();
  planned[Symbol.dispose]();
  await models.close();
  expect(events).toEqual(['open a', 'close a']);
});

test('the idle unload of one model leaves another one that is in use as it is', async () => {
  const { models } = world({ idle_unload_ms: 1 });
  using busy = models.for(row('a'));
  using idle = models.for(row('b'));
  const release = Promise.withResolvers<void>();
  const plan = await busy.plan(INPUT);
  const using_it = busy.answer(plan, {
    scope: 'test',
    schedulePlan: (_, work) => release.promise.then(work),
  });
  await idle.answer(plan, { scope: 'test' });
  while (models.lifecycle('b')?.status().state !== 'cold') await turn();
  while (models.lifecycle('a')?.status().state !== 'ready') await turn();
  release.resolve();
  await using_it;
  while (models.lifecycle('a')?.status().state !== 'cold') await turn();
  await models.close();
});

test('a model that cannot be loaded is reported with its id, and says so in its state; others load', async () => {
  const { models, problems } = world();
  const broken = row('broken', { weights: join(directory.path, 'missing.gguf') });
  models.follow([broken, row('a')]);
  await expect(models.load(broken)).rejects.toBeInstanceOf(ModelUnavailable);
  await models.load(row('a'));
  expect(problems).toMatchObject([{ request_id: null, step: 'model_load', code: null, model: 'broken' }]);
  const [a, of_broken] = models.states();
  expect(a).toMatchObject({ id: 'a', state: expect.stringMatching(/ready$/), load_error: undefined });
  expect(of_broken).toMatchObject({ id: 'broken', state: 'cold', load_error: expect.any(String) });
  await models.close();
});

/** A row whose weights were checked when it was added. */
const CHECKED = { weights_sha256: 'before', profile: 'markers-v1' } as const;

test('a reload takes the requests that come, leaves those that have begun to the life before, and closes that after them', async () => {
  const { models, events } = world();
  const before = row('a', CHECKED);
  models.follow([before]);
  const first = models.lifecycle('a');
  using begun = models.for(before);
  const plan = await begun.plan(INPUT);
  const reload = (write: (loaded: DecisionModelEntry) => Promise<void>) =>
    models.reload(() => Promise.resolve({ model: before, write }));
  let after = before;
  await reload((loaded) => {
    after = loaded;
    // A request may read the row before the reload knows that it is written.
    models.for(loaded)[Symbol.dispose]();
    expect(models.lifecycle('a')).not.toBe(first);
    return Promise.resolve();
  });
  expect(after).toMatchObject({
    ...CHECKED,
    weights_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    profile: expect.any(String),
  });
  const second = models.lifecycle('a');
  expect(second?.status().state).toBe('ready');
  // Another request has read the row just before it was written.
  models.for(before)[Symbol.dispose]();
  models.for(after)[Symbol.dispose]();
  models.follow([after]);
  expect(models.lifecycle('a')).toBe(second);
  const { scores } = await begun.answer(plan, { scope: 'test' });
  expect(scores).toHaveLength(1);
  expect(events).toEqual(['open a', 'open a']);
  begun[Symbol.dispose]();
  while (events.length === 2) await turn();
  expect(events).toEqual(['open a', 'open a', 'close a']);
  await models.close();
  expect(events).toEqual(['open a', 'open a', 'close a', 'close a']);
});

test('a reload that does not load, or whose row is not written, leaves the life before; reloads come one after the other', async () => {
  const { models, events, problems } = world();
  models.follow([row('a')]);
  await models.load(row('a'));
  const first = models.lifecycle('a');
  const broken = { ...row('a'), weights: join(directory.path, 'missing.gguf') };
  const written: string[] = [];
  const write = (model: DecisionModelEntry) => {
    written.push(model.weights);
    return Promise.reject(new Error('the disk is full'));
  };
  const outcomes = await Promise.allSettled([
    models.reload(() => Promise.resolve({ model: broken, write })),
    models.reload(() => Promise.resolve({ model: row('a'), write })),
    models.reload(() => Promise.reject(new Error('it is gone'))),
  ]);
  expect(outcomes).toMatchObject([
    { reason: expect.any(ModelUnavailable) },
    { reason: { message: 'the disk is full' } },
    { reason: { message: 'it is gone' } },
  ]);
  expect(written).toEqual([path]);
  expect(problems).toMatchObject([{ step: 'model_load', model: 'a' }]);
  expect(models.lifecycle('a')).toBe(first);
  while (events.length < 3) await turn();
  expect(events).toEqual(['open a', 'open a', 'close a']);
  await models.close();
});

test('new weights that read fewer tokens than the model promises are not taken', async () => {
  const { models } = world();
  const model = row('a', { ...CHECKED, context_tokens: 1_000_000 });
  models.follow([model]);
  const write = () => Promise.resolve();
  await expect(models.reload(() => Promise.resolve({ model, write }))).rejects.toBeInstanceOf(WeightsError);
  await models.close();
});

test('the end rejects a reload, and frees what it has loaded', async () => {
  const { models, events } = world();
  models.follow([row('a')]);
  const begun = Promise.withResolvers<void>();
  const reloaded = models.reload(() => {
    begun.resolve();
    return Promise.resolve({ model: row('a'), write: () => Promise.resolve() });
  });
  const outcome = reloaded.catch((error: unknown) => error);
  await begun.promise;
  await models.close();
  expect(await outcome).toBeInstanceOf(ModelUnavailable);
  expect(events.filter((event) => event.startsWith('open'))).toHaveLength(
    events.filter((event) => event.startsWith('close')).length,
  );
  await expect(models.reload(() => Promise.reject(new Error('it is asked')))).rejects.toBeInstanceOf(
    ModelUnavailable,
  );
});

test('the end waits for a load that hangs in a bounded time and reports it; what comes of it later is closed', async () => {
  const late = Promise.withResolvers<DecisionPlanner>();
  const asked = Promise.withResolvers<void>();
  const openLate = () => {
    asked.resolve();
    return late.promise;
  };
  const { models, problems } = world({ closing_ms: 1, openPlanner: openLate });
  models.follow([row('a')]);
  const loaded = models.load(row('a')).catch((error: unknown) => error);
  await asked.promise;
  await models.close();
  expect(problems).toMatchObject([{ step: 'model_close', error: { name: 'TookTooLong' } }]);
  const planner = await openPlanner({ model_path: path, context_tokens: 256, gpu: false, threads: 1 });
  const closed = Promise.withResolvers<void>();
  late.resolve({
    plan: (input) => planner.plan(input),
    openEngine: () => planner.openEngine(),
    close: () => planner.close().then(closed.resolve),
  });
  expect(await loaded).toBeInstanceOf(ModelUnavailable);
  await closed.promise;
  expect(problems).toHaveLength(1);
});

test('the end closes all models, those that are gone but in use too; who comes later is refused', async () => {
  const { models, events } = world();
  using gone = models.for(row('gone'));
  using there = models.for(row('there'));
  const never = new Promise<never>(() => {});
  const plan = await gone.plan(INPUT);
  const unanswered = { scope: 'test', schedulePlan: () => never };
  const used = Promise.allSettled([gone.answer(plan, unanswered), there.answer(plan, unanswered)]);
  while (models.states().some(({ state }) => state === 'loading' || state === 'cold')) await turn();
  models.follow([row('there')]);
  await models.close();
  for (const result of await used) expect(result).toMatchObject({ status: 'rejected' });
  // The last request ends after the end, and closes nothing again.
  gone[Symbol.dispose]();
  await models.close();
  expect(events.filter((event) => event.startsWith('close')).sort()).toEqual(['close gone', 'close there']);
  for (const id of ['there', 'new']) {
    using late = models.for(row(id));
    await expect(late.plan(INPUT)).rejects.toBeInstanceOf(ModelUnavailable);
    await expect(late.answer(plan, unanswered)).rejects.toBeInstanceOf(ModelUnavailable);
  }
  expect(events).toHaveLength(4);
});
