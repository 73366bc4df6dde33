import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import {
  type DecisionEngine,
  type DecisionInput,
  type DecisionPlanner,
  EngineFailed,
  EvaluationFailed,
  EvaluationTimedOut,
  openPlanner,
  PlanRejected,
  type SchedulePlan,
} from '../../native/engine.ts';
import { SerialQueue } from '../../native/evaluators/serial-queue.ts';
import type { Mode } from '../../src/questions/question.ts';
import { QueueTimedOut } from '../../src/scheduling/model-scheduler.ts';
import { EngineLifecycle, type LifecycleOptions } from '../../src/served-models/engine-lifecycle.ts';
import { ModelUnavailable, ModelWarmingUp } from '../../src/served-models/model-answerer.ts';
import type { Schedule } from '../../src/time/schedule.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { eventually } from '../support/eventually.ts';
import { Gate } from '../support/faults.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
const lifecycles: EngineLifecycle[] = [];
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(path, TINY_MARKERS);
});
afterAll(async () => {
  for (const lifecycle of lifecycles) await lifecycle.close();
  await directory[Symbol.asyncDispose]();
});

/**
 * The engines that were opened and closed, in order; consistent warm-ups wait for `gate`, opening fails while
 * `failures` last.
 */
interface World {
  readonly lifecycle: EngineLifecycle;
  readonly events: string[];
  /** The planners that were opened and closed. */
  readonly planner_events: string[];
  /** The failures in the background. */
  readonly problems: (readonly [step: string, error: unknown])[];
  failures: number;
  planner_failures: number;
  /** The error of an engine's next close. */
  close_failure: Error | undefined;
  /** Lets the consistent warm-up of every engine go on. */
  readonly openGate: () => void;
  /** Runs what was scheduled last, if it was not cancelled. */
  readonly passTime: () => void;
  /** Runs what was scheduled after that delay and not cancelled. */
  readonly pass: (delay_ms: number) => void;
  readonly delays_ms: readonly number[];
  /** True if a warm-up or a probe has reached an engine. */
  is_asked: boolean;
  /** The lifecycle's time. */
  now_ms: number;
  /** Every planner's, or engine's, opening waits for this. */
  beforeOpening: (what: 'planner' | 'engine') => Promise<void>;
  /** Every engine's warm-ups and probes wait for this before their evaluation. */
  beforeWarmUp: (mode: Mode) => Promise<void>;
  /** Plans of each engine are computed one after the other, as on `llama`, and each waits for this. */
  beforeComputing: (scope: string) => Promise<void>;
  /** Every engine's close waits for this. */
  beforeClosing: () => Promise<void>;
}

/** A lifecycle of real engines on a generated model, whose time and whose failures are the test's. */
type Times = Pick<LifecycleOptions, 'idle_unload_ms' | 'waiting_ms' | 'opening_ms'>;
function world(options: Times = {}, gated = false): World {
  const events: string[] = [];
  const planner_events: string[] = [];
  const delays_ms: number[] = [];
  const gate = Promise.withResolvers<void>();
  if (!gated) gate.resolve();
  let due: (() => void) | undefined;
  const scheduled = new Map<() => void, number>();
  const schedule: Schedule = (callback, delay_ms) => {
    delays_ms.push(delay_ms);
    due = callback;
    scheduled.set(callback, delay_ms);
    return () => {
      scheduled.delete(callback);
      if (due === callback) due = undefined;
    };
  };
  const made: World = {
    lifecycle: new EngineLifecycle({
      ...options,
      schedule,
      now_ms: () => made.now_ms,
      onProblem: (step, error) => made.problems.push([step, error]),
      openPlanner: async () => {
        planner_events.push('open');
        await made.beforeOpening('planner');
        if (made.planner_failures > 0) {
          made.planner_failures -= 1;
          throw new Error('no vocabulary');
        }
        const planner = await openPlanner({ model_path: path, gpu: false, threads: 1, context_tokens: 256 });
        return {
          plan: (input) => planner.plan(input),
          openEngine: () => openEngine(planner),
          close() {
            planner_events.push('close');
            return planner.close();
          },
        };
      },
    }),
    events,
    planner_events,
    problems: [],
    failures: 0,
    planner_failures: 0,
    close_failure: undefined,
    openGate: gate.resolve,
    passTime: () => due?.(),
    pass(delay) {
      for (const [callback, delay_ms] of scheduled) {
        if (delay_ms === delay && scheduled.delete(callback)) callback();
      }
    },
    delays_ms,
    is_asked: false,
    now_ms: 0,
    beforeOpening: () => Promise.resolve(),
    beforeWarmUp: () => Promise.resolve(),
    beforeComputing: () => Promise.resolve(),
    beforeClosing: () => Promise.resolve(),
  };
  const openEngine = async (planner: DecisionPlanner): Promise<DecisionEngine> => {
    events.push('open');
    await made.beforeOpening('engine');
    if (made.failures > 0) {
      made.failures -= 1;
      throw new Error('no memory');
    }
    const engine = await planner.openEngine();
    const queue = new SerialQueue(64);
    const counts = engine.counts?.bind(engine);
    return {
      facts: engine.facts,
      ...(counts === undefined ? {} : { counts }),
      plan: (input) => engine.plan(input),
      async evaluate(plan, evaluation) {
        const { mode } = plan.input;
        const { scope, schedulePlan: schedule = (_, work) => work() } = evaluation;
        const schedulePlan: SchedulePlan = (scheduled, work, given_up) => {
          const compute = () => made.beforeComputing(scope).then(work);
          return schedule(scheduled, () => queue.run(compute, given_up), given_up);
        };
        if (evaluation.scope === 'warm-up') {
          made.is_asked = true;
          await made.beforeWarmUp(mode);
        }
        if (mode === 'consistent' && evaluation.scope === 'warm-up') await gate.promise;
        return await engine.evaluate(plan, { ...evaluation, schedulePlan });
      },
      async close() {
        events.push('close');
        const { close_failure } = made;
        made.close_failure = undefined;
        await made.beforeClosing();
        await engine.close();
        if (close_failure !== undefined) throw close_failure;
      },
    };
  };
  lifecycles.push(made.lifecycle);
  return made;
}

const NOUL = { type: 'noul', instructions: 'on?', yes: undefined, no: undefined } as const;

function input(mode: Mode): DecisionInput {
  return { state: 'on', questions: [NOUL], mode };
}

async function ask(engine: DecisionEngine, mode: Mode = 'fast'): Promise<number> {
  const [scores] = await engine.evaluate(await engine.plan(input(mode)), { scope: 'test' });
  return scores?.[0] ?? Number.NaN;
}

const askFast = (engine: DecisionEngine) => ask(engine);

/** Does work that breaks the engine. */
async function breakEngine(lifecycle: EngineLifecycle): Promise<void> {
  await lifecycle.use('fast', () => Promise.reject(new EngineFailed('broken'))).catch(() => {});
}

/** Asks again until consistent mode is up. */
async function consistentReady(lifecycle: EngineLifecycle): Promise<void> {
  while (lifecycle.status().state !== 'ready') await new Promise(setImmediate);
}

describe('loading', () => {
  test('a cold model is loaded once for all who come, and they are answered', async () => {
    const { lifecycle, events } = world();
    expect(lifecycle.status()).toEqual({ state: 'cold', load_error: undefined });
    expect(lifecycle.engineIfLoaded()).toBeUndefined();
    const asked = Promise.all([1, 2, 3].map(() => lifecycle.use('fast', askFast)));
    expect(lifecycle.status().state).toBe('loading');
    const scores = await asked;
    expect(new Set(scores).size).toBe(1);
    expect(scores.every(Number.isFinite)).toBe(true);
    expect(events).toEqual(['open']);
    expect(lifecycle.engineIfLoaded()).toBe(await lifecycle.ready('fast'));
  });

  test('the speed is measured 5 s after both modes are ready, unless the engine is gone, and a failure to do so is only reported', async () => {
    const problems: string[] = [];
    /** The measurements that wait for their time. */
    const due: (() => void)[] = [];
    const expectDue = async (lifecycle: EngineLifecycle) => {
      await lifecycle.ready('fast');
      await lifecycle.consistentStarted();
      expect([due.length, lifecycle.speed()]).toEqual([1, undefined]);
    };
    const open = (around: (engine: DecisionEngine) => DecisionEngine) => {
      const lifecycle = new EngineLifecycle({
        onProblem: (step) => problems.push(step),
        schedule: (callback, delay_ms) => {
          if (delay_ms === 5_000) due.push(callback);
          return () => {};
        },
        openPlanner: async () => {
          const planner = await openPlanner({
            model_path: path,
            gpu: false,
            threads: 1,
            context_tokens: 1024,
          });
          return {
            plan: (asked) => planner.plan(asked),
            openEngine: async () => around(await planner.openEngine()),
            close: () => planner.close(),
          };
        },
      });
      lifecycles.push(lifecycle);
      return lifecycle;
    };
    const measured = open((engine) => engine);
    await expectDue(measured);
    due.pop()?.();
    await eventually(() => measured.speed() !== undefined);
    const { ms_per_token = 0, ms_per_pair = 0 } = measured.speed() ?? {};
    expect(ms_per_token >= 0 && ms_per_pair > 0 && Number.isFinite(ms_per_token + ms_per_pair)).toBe(true);
    expect(problems).toEqual([]);
    let measurements = 0;
    const unmeasurable = (engine: DecisionEngine): DecisionEngine => ({
      facts: engine.facts,
      plan: (asked) => engine.plan(asked),
      evaluate: (plan, options) => engine.evaluate(plan, options),
      measureSpeed: () => {
        measurements += 1;
        return Promise.reject(new EvaluationFailed('no number'));
      },
      close: () => engine.close(),
    });
    const broken = open(unmeasurable);
    await expectDue(broken);
    due.pop()?.();
    await eventually(() => problems.length > 0);
    expect([problems, broken.speed()]).toEqual([['model_warm_up'], undefined]);
    expect(Number.isFinite(await broken.use('consistent', (engine) => ask(engine, 'consistent')))).toBe(true);
    const closed = open(unmeasurable);
    await expectDue(closed);
    await closed.close();
    due.pop()?.();
    expect([measurements, problems]).toEqual([1, ['model_warm_up']]);
  });

  test('consistent mode comes after fast mode, and until then is refused with a time', async () => {
    const { lifecycle, openGate } = world({}, true);
    // A consistent request is refused by a cold model too, and loads it.
    await expect(lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelWarmingUp);
    expect(lifecycle.status().state).toBe('loading');
    await lifecycle.ready('fast');
    expect(lifecycle.status().state).toBe('fast_ready');
    await expect(lifecycle.use('consistent', askFast)).rejects.toBeInstanceOf(ModelWarmingUp);
    expect(Number.isFinite(await lifecycle.use('fast', askFast))).toBe(true);
    openGate();
    await consistentReady(lifecycle);
    const score = await lifecycle.use('consistent', (engine) => ask(engine, 'consistent'));
    expect(Number.isFinite(score)).toBe(true);
  });

  test('a failed load fails those who wait, and the next call tries again', async () => {
    const made = world();
    made.failures = 1;
    const { lifecycle } = made;
    const outcomes = await Promise.allSettled([lifecycle.ready('fast'), lifecycle.use('fast', askFast)]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ModelUnavailable) });
    }
    expect(lifecycle.status()).toEqual({ state: 'cold', load_error: 'no memory' });
    expect(Number.isFinite(await lifecycle.use('fast', askFast))).toBe(true);
    expect(lifecycle.status().load_error).toBeUndefined();
    expect(made.events).toEqual(['open', 'open']);
  });

  test('a model that cannot be loaded is not said to be warming up', async () => {
    const made = world();
    made.failures = 2;
    await made.lifecycle.ready('fast').catch(() => {});
    await expect(made.lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelUnavailable);
    await expect(made.lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelWarmingUp);
  });

  test('who gives up waiting does not stop the load', async () => {
    const { lifecycle, events } = world();
    const impatient = new AbortController();
    const waiting = lifecycle.ready('fast', impatient.signal);
    impatient.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await expect(lifecycle.ready('fast', impatient.signal)).rejects.toThrow('gone');
    await lifecycle.ready('fast');
    expect(events).toEqual(['open']);
  });
});

describe('a load that takes too long', () => {
  const TIMES = { waiting_ms: 120_000, opening_ms: 900_000 };
  /** Waits for what takes turns of the event loop only. */
  const until = async (is_so: () => boolean) => {
    while (!is_so()) await new Promise(setImmediate);
  };

  test('a request waits for its bounded time, is told to come back, and then finds the model', async () => {
    const made = world(TIMES);
    const { lifecycle, events, problems } = made;
    const opened = Promise.withResolvers<void>();
    made.beforeOpening = () => opened.promise;
    const asked = Promise.allSettled([
      lifecycle.readyToPlan(),
      lifecycle.plan(input('fast')),
      lifecycle.use('fast', askFast),
    ]);
    await until(() => made.delays_ms.filter((ms) => ms === TIMES.waiting_ms).length === 3);
    made.pass(TIMES.waiting_ms);
    for (const outcome of await asked) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ModelWarmingUp) });
    }
    expect(lifecycle.status()).toEqual({ state: 'loading', load_error: undefined });
    opened.resolve();
    expect(Number.isFinite(await lifecycle.use('fast', askFast))).toBe(true);
    expect(events).toEqual(['open']);
    expect(problems).toEqual([]);
  });

  for (const hanging of ['planner', 'engine', 'first answer'] as const) {
    test(`${hanging}: it is given up and reported, and the next request loads anew; what comes late is closed`, async () => {
      const made = world(TIMES);
      const { lifecycle, events, planner_events, problems } = made;
      const late = Promise.withResolvers<void>();
      made.beforeOpening = (what) => (what === hanging ? late.promise : Promise.resolve());
      if (hanging === 'first answer') made.beforeWarmUp = () => late.promise;
      const asked = Promise.allSettled([lifecycle.use('fast', askFast)]);
      await until(() => (hanging === 'planner' ? planner_events : events).length === 1);
      while (lifecycle.status().state === 'loading') {
        if (hanging !== 'first answer' || made.is_asked) made.pass(TIMES.opening_ms);
        await new Promise(setImmediate);
      }
      expect(await asked).toMatchObject([{ status: 'rejected', reason: expect.any(ModelUnavailable) }]);
      expect(lifecycle.status()).toEqual({
        state: 'cold',
        load_error: expect.stringMatching(/did not come in 900 seconds\.$/),
      });
      expect(problems).toMatchObject([['model_load', { name: 'EngineStuck' }]]);

      made.beforeOpening = () => Promise.resolve();
      made.beforeWarmUp = () => Promise.resolve();
      expect(Number.isFinite(await lifecycle.use('fast', askFast))).toBe(true);
      expect(lifecycle.status().load_error).toBeUndefined();
      late.resolve();
      await until(() => [...events, ...planner_events].filter((event) => event === 'close').length === 1);
      expect(Number.isFinite(await lifecycle.use('fast', askFast))).toBe(true);
      expect(problems).toHaveLength(1);
    });
  }

  test('a vocabulary that only plans wait for is reported, too', async () => {
    const made = world(TIMES);
    made.beforeOpening = () => new Promise(() => {});
    const planned = made.lifecycle.plan(input('fast')).catch((error: unknown) => error);
    await until(() => made.delays_ms.includes(TIMES.waiting_ms));
    made.pass(TIMES.waiting_ms);
    expect(await planned).toBeInstanceOf(ModelWarmingUp);
    made.pass(TIMES.opening_ms);
    await until(() => made.problems.length === 1);
    expect(made.problems).toMatchObject([['model_load', { name: 'EngineStuck' }]]);
    made.beforeOpening = () => Promise.resolve();
    expect(await made.lifecycle.plan(input('fast'))).toMatchObject({ input: input('fast') });
  });

  test('a start of consistent mode: the engine is given up, and the next one is whole', async () => {
    const made = world(TIMES);
    const { lifecycle, events, problems } = made;
    made.beforeWarmUp = (mode) => (mode === 'consistent' ? new Promise(() => {}) : Promise.resolve());
    await lifecycle.ready('fast');
    made.pass(TIMES.opening_ms);
    await until(() => lifecycle.status().state === 'cold');
    expect(problems).toMatchObject([['model_warm_up', { name: 'EngineStuck' }]]);
    made.beforeWarmUp = () => Promise.resolve();
    await lifecycle.ready('fast');
    await consistentReady(lifecycle);
    expect(events).toEqual(['open', 'close', 'open']);
  });

  test('a vocabulary: who leaves waits for it no longer, and it still comes for the others', async () => {
    const made = world(TIMES);
    const { lifecycle } = made;
    const opened = Promise.withResolvers<void>();
    made.beforeOpening = () => opened.promise;
    const [reason, leaving] = [new Error('gone'), new AbortController()];
    const left = lifecycle.plan(input('fast'), leaving.signal).catch((error: unknown) => error);
    leaving.abort(reason);
    expect(await left).toBe(reason);
    await expect(lifecycle.plan(input('fast'), leaving.signal)).rejects.toBe(reason);
    opened.resolve();
    expect(await lifecycle.plan(input('fast'))).toMatchObject({ input: input('fast') });
    expect(made.planner_events).toEqual(['open']);
    expect(made.problems).toEqual([]);
  });
});

describe('unloading when idle', () => {
  test('is off by default', async () => {
    const { lifecycle, delays_ms } = world();
    await lifecycle.use('fast', askFast);
    expect(delays_ms).toEqual([]);
  });

  test('happens after the idle time, and the next request loads anew', async () => {
    const { lifecycle, events, passTime, delays_ms } = world({ idle_unload_ms: 60_000 });
    const before = await lifecycle.use('fast', askFast);
    expect(delays_ms.at(-1)).toBe(60_000);
    passTime();
    expect(lifecycle.status().state).toBe('cold');
    expect(lifecycle.engineIfLoaded()).toBeUndefined();
    expect(await lifecycle.use('fast', askFast)).toBe(before);
    expect(events).toEqual(['open', 'close', 'open']);
  });

  test('keeps what was counted, so that no metric loses it, and frees its bytes', async () => {
    const { lifecycle, passTime } = world({ idle_unload_ms: 60_000 });
    const askAlone = async () => {
      await lifecycle.ready('fast');
      await lifecycle.consistentStarted();
      await lifecycle.use('fast', askFast);
    };
    await askAlone();
    const once = lifecycle.counts();
    if (once?.batches === undefined) throw new Error('nothing was counted');
    expect(once.decodes).toBeGreaterThan(0);
    passTime();
    expect(lifecycle.counts()).toEqual({ ...once, kept_prefix_bytes: 0, kv_cache_bytes: 0 });
    await askAlone();
    const twice = lifecycle.counts();
    expect(twice).toMatchObject({ decodes: 2 * once.decodes, read_tokens: 2 * once.read_tokens });
    const batches = twice?.batches?.by_size.reduce((sum, count) => sum + count, 0);
    expect(batches).toBe(2 * once.decodes);
    expect(twice?.kv_cache_bytes).toBe(once.kv_cache_bytes);
  });

  test('takes another idle time while the engine is loaded, and none any more', async () => {
    const { lifecycle, passTime, delays_ms } = world();
    await lifecycle.use('fast', askFast);
    lifecycle.setIdleUnload(5_000);
    expect(delays_ms).toEqual([5_000]);
    lifecycle.setIdleUnload(0);
    passTime();
    expect(lifecycle.status().state).not.toBe('cold');
    lifecycle.setIdleUnload(1_000);
    passTime();
    expect(lifecycle.status().state).toBe('cold');
  });

  test('never closes an engine in use', async () => {
    const { lifecycle, events, passTime } = world({ idle_unload_ms: 60_000 });
    await lifecycle.ready('fast');
    await lifecycle.use('fast', async (engine) => {
      passTime();
      expect(lifecycle.status().state).not.toBe('cold');
      expect(Number.isFinite(await ask(engine))).toBe(true);
    });
    expect(events).toEqual(['open']);
    passTime();
    expect(lifecycle.status().state).toBe('cold');
  });
});

test('work that still ends after its client has left counts, because it is charged', async () => {
  const { lifecycle } = world();
  const gone = new AbortController();
  const used = lifecycle.use(
    'fast',
    async (_, signal) => {
      gone.abort(new Error('gone'));
      await new Promise(setImmediate);
      return signal.aborted ? 'done' : 'not told';
    },
    gone.signal,
  );
  expect(await used).toBe('done');
  await lifecycle.close();
});

describe('the time until consistent mode is ready', () => {
  const told_s = async (lifecycle: EngineLifecycle): Promise<number> => {
    const error: unknown = await lifecycle.ready('consistent').catch((reason: unknown) => reason);
    if (!(error instanceof ModelWarmingUp)) throw new Error('it is ready');
    return error.retry_after_s;
  };

  /** Loads once: the load takes 20 seconds, and the start of consistent mode 40. */
  async function measured(options: Pick<LifecycleOptions, 'idle_unload_ms'> = {}): Promise<World> {
    const made = world(options, true);
    made.beforeWarmUp = () => {
      made.now_ms += 20_000;
      made.beforeWarmUp = () => Promise.resolve();
      return Promise.resolve();
    };
    await made.lifecycle.ready('fast');
    made.now_ms += 40_000;
    made.openGate();
    await consistentReady(made.lifecycle);
    return made;
  }

  test('is at least a second, and less and less', async () => {
    const made = world({}, true);
    await made.lifecycle.ready('fast');
    const told: number[] = [];
    for (let second = 0; second < 10; second++) {
      told.push(await told_s(made.lifecycle));
      made.now_ms += 1_000;
    }
    expect(told).toEqual([5, 4, 3, 2, 1, 1, 1, 1, 1, 1]);
    made.openGate();
  });

  test('is what it took before, less what has passed', async () => {
    const made = await measured();
    await breakEngine(made.lifecycle);
    const ends = {
      fast: Promise.withResolvers<void>(),
      consistent: Promise.withResolvers<void>(),
    };
    made.beforeWarmUp = (mode) => ends[mode].promise;
    expect(await told_s(made.lifecycle)).toBe(60);
    made.now_ms += 15_500;
    expect(await told_s(made.lifecycle)).toBe(45);
    // The load takes longer this time.
    made.now_ms += 30_000;
    expect(await told_s(made.lifecycle)).toBe(40);
    ends.fast.resolve();
    await made.lifecycle.ready('fast');
    expect(await told_s(made.lifecycle)).toBe(40);
    made.now_ms += 39_500;
    expect(await told_s(made.lifecycle)).toBe(1);
    ends.consistent.resolve();
    await consistentReady(made.lifecycle);
  });

  test('a client that was told to come back finds the model, however short the idle time is', async () => {
    const made = await measured({ idle_unload_ms: 2_000 });
    const { lifecycle, passTime, delays_ms } = made;
    expect(delays_ms.at(-1)).toBe(2_000);
    passTime();
    expect(lifecycle.status().state).toBe('cold');
    const retry_after_ms = 1_000 * (await told_s(lifecycle));
    await lifecycle.ready('fast');
    await consistentReady(lifecycle);
    // Nobody else asks: the model is kept until the client has had its time, and a little more.
    expect(delays_ms.at(-1)).toBeGreaterThan(retry_after_ms);
    made.now_ms += retry_after_ms;
    expect(Number.isFinite(await lifecycle.use('consistent', (engine) => ask(engine, 'consistent')))).toBe(
      true,
    );
    made.now_ms += 60_000;
    await lifecycle.use('fast', askFast);
    expect(delays_ms.at(-1)).toBe(2_000);
  });
});

describe('recovering', () => {
  test("an engine that failed is replaced, and the others' work begins anew on the next one", async () => {
    const { lifecycle, events } = world();
    const begun: AbortSignal[] = [];
    const held = Promise.withResolvers<void>();
    const using = lifecycle.use('fast', async (engine, signal) => {
      begun.push(signal);
      if (begun.length === 1) await held.promise;
      return await ask(engine);
    });
    const consistent = consistentReady(lifecycle).then(() =>
      lifecycle.use('consistent', async (engine) => {
        if (events.length === 1) await held.promise;
        return await ask(engine, 'consistent');
      }),
    );
    await lifecycle.ready('fast');
    await consistentReady(lifecycle);
    await new Promise(setImmediate);
    const failure = new EngineFailed('decode failed');
    await expect(lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
    expect(lifecycle.status().state).not.toBe('ready');
    // Nobody waits for work on what has failed, nor refuses what was accepted.
    expect(await using).toBe(await lifecycle.use('fast', askFast));
    expect(Number.isFinite(await consistent)).toBe(true);
    expect(begun.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(events).toEqual(['open', 'close', 'open']);
    held.resolve();
  });

  test('the failure of others is not the own one, and a request does not go from engine to engine for ever', async () => {
    const { lifecycle, events } = world();
    await lifecycle.ready('fast');
    const victim = lifecycle.use('fast', (_, signal) => {
      void lifecycle.use('fast', () => Promise.reject(new EngineFailed('poison'))).catch(() => {});
      return new Promise<never>((__, reject) =>
        signal.addEventListener('abort', () => reject(new EngineFailed('closed'))),
      );
    });
    await expect(victim).rejects.toBeInstanceOf(ModelUnavailable);
    expect(events.filter((event) => event === 'open')).toHaveLength(3);
  });

  test('the next engine is opened when the failed one is closed: there may be no memory for both', async () => {
    const made = world();
    await made.lifecycle.ready('fast');
    await consistentReady(made.lifecycle);
    const gate = new Gate();
    made.beforeClosing = () => gate.pass();
    await breakEngine(made.lifecycle);
    const next = made.lifecycle.ready('fast');
    await gate.reached;
    await new Promise(setImmediate);
    expect(made.events).toEqual(['open', 'close']);
    gate.open();
    await next;
    expect(made.events).toEqual(['open', 'close', 'open']);
  });

  test('a failure is counted once, and other errors not at all', async () => {
    const { lifecycle, events } = world();
    const failure = new EngineFailed('decode failed');
    await lifecycle.use('fast', () => Promise.reject(failure)).catch(() => {});
    await lifecycle.ready('fast');
    await lifecycle.use('fast', () => Promise.reject(new Error('something else'))).catch(() => {});
    expect(events).toEqual(['open', 'close', 'open']);
    await breakEngine(lifecycle);
    await lifecycle.ready('fast');
    expect(events).toEqual(['open', 'close', 'open', 'close', 'open']);
  });

  test('an engine that hung for as long as a client had patience is replaced', async () => {
    const made = world();
    await made.lifecycle.ready('fast');
    await consistentReady(made.lifecycle);
    made.beforeWarmUp = () => {
      made.beforeWarmUp = () => Promise.resolve();
      return new Promise<never>(() => {});
    };
    const leave = async (waited_ms: number) => {
      const client = new AbortController();
      const waiting = made.lifecycle.use(
        'fast',
        (_, signal) =>
          new Promise<never>((__, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        client.signal,
      );
      await new Promise(setImmediate);
      made.now_ms += waited_ms;
      client.abort(new Error('gone'));
      await expect(waiting).rejects.toThrow('gone');
      made.passTime();
    };
    await leave(1_000);
    expect(made.lifecycle.status().state).toBe('ready');
    await leave(120_000);
    expect(made.lifecycle.status().state).toBe('cold');
  });

  describe('a client that had no patience behind a plan of minutes', () => {
    const AT_ONCE: SchedulePlan = (_, work) => work();

    /** An engine with a plan that may take until 500 s, and a probe behind it since 120 s. */
    async function probed() {
      const made = world();
      const { lifecycle } = made;
      await lifecycle.ready('fast');
      await consistentReady(lifecycle);
      const gate = new Gate();
      const computed: string[] = [];
      made.beforeComputing = async (scope) => {
        computed.push(scope);
        if (computed.length === 1) await gate.pass();
      };
      const plan = await lifecycle.plan(input('fast'));
      const answer = (scope: string, signal?: AbortSignal) =>
        lifecycle.answer(plan, {
          scope,
          schedulePlan: AT_ONCE,
          evaluation_ms: () => 500_000,
          ...(signal && { signal }),
        });
      const first = answer('first');
      await gate.reached;
      const client = new AbortController();
      const second = answer('second', client.signal);
      await new Promise(setImmediate);
      made.now_ms = 120_000;
      client.abort(new Error('gone'));
      await expect(second).rejects.toThrow('gone');
      made.pass(120_000);
      return { made, gate, computed, first };
    }

    test('does not retire an engine that is done with it in time', async () => {
      const { made, gate, computed, first } = await probed();
      gate.open();
      expect((await first).scores).toHaveLength(1);
      expect(computed.filter((scope) => scope === 'first')).toHaveLength(1);
      expect(made.events).toEqual(['open']);
    });

    test('retires one that is not', async () => {
      const { made, gate, first } = await probed();
      made.pass(380_000 + 120_000);
      expect((await first).scores).toHaveLength(1);
      expect(made.events).toEqual(['open', 'close', 'open']);
      gate.open();
    });

    test('asks nothing of an engine that never had its plan', async () => {
      const made = world();
      await made.lifecycle.ready('fast');
      await consistentReady(made.lifecycle);
      const scheduled = made.delays_ms.length;
      const waiting = made.lifecycle.use('fast', () => {
        made.now_ms = 120_000;
        return Promise.reject(new QueueTimedOut(1));
      });
      await expect(waiting).rejects.toBeInstanceOf(QueueTimedOut);
      expect(made.delays_ms).toHaveLength(scheduled);
    });
  });

  describe.each([
    ['a plan that cannot be answered', new EvaluationFailed('a logit is no number')],
    ['an evaluation that took too long', new EvaluationTimedOut('too long')],
  ])('%s', (_, failure) => {
    test('does not retire an engine that still answers', async () => {
      const made = world();
      await made.lifecycle.ready('fast');
      await consistentReady(made.lifecycle);
      const engine = made.lifecycle.engineIfLoaded();
      const probed = Promise.withResolvers<void>();
      made.beforeWarmUp = () => {
        probed.resolve();
        return Promise.resolve();
      };
      await expect(made.lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      await probed.promise;
      expect(Number.isFinite(await made.lifecycle.use('fast', askFast))).toBe(true);
      expect(made.lifecycle.engineIfLoaded()).toBe(engine);
      expect(made.events).toEqual(['open']);
    });

    test('retires one that gives no answers', async () => {
      const made = world();
      await made.lifecycle.ready('fast');
      await consistentReady(made.lifecycle);
      made.beforeWarmUp = () => {
        made.beforeWarmUp = () => Promise.resolve();
        return Promise.reject(new EvaluationFailed('a logit is no number'));
      };
      await expect(made.lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      while (made.lifecycle.status().state === 'ready') await new Promise(setImmediate);
      expect(Number.isFinite(await made.lifecycle.use('fast', askFast))).toBe(true);
      expect(made.events).toEqual(['open', 'close', 'open']);
    });

    test('retires one that answered when it was asked before, and gives no answers now', async () => {
      const made = world();
      const { lifecycle } = made;
      await lifecycle.ready('fast');
      await consistentReady(lifecycle);
      made.is_asked = false;
      await expect(lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      while (!made.is_asked) await new Promise(setImmediate);
      // Answered after the probe.
      await lifecycle.use('fast', askFast);
      await new Promise(setImmediate);
      made.beforeWarmUp = () => Promise.reject(new EvaluationFailed('a logit is no number'));
      await expect(lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      await eventually(() => lifecycle.status().state === 'cold');
    });

    test('asks one that has not answered yet nothing more', async () => {
      const made = world();
      await made.lifecycle.ready('fast');
      await consistentReady(made.lifecycle);
      const scheduled = made.delays_ms.length;
      made.beforeWarmUp = () => new Promise<never>(() => {});
      for (let time = 0; time < 2; time += 1)
        await expect(made.lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      expect(made.delays_ms.slice(scheduled)).toEqual([120_000]);
    });

    test('retires one that hangs, and who waits on it goes on with the next one', async () => {
      const made = world();
      await made.lifecycle.ready('fast');
      await consistentReady(made.lifecycle);
      const hanging = new Promise<never>(() => {});
      made.beforeWarmUp = () => {
        made.beforeWarmUp = () => Promise.resolve();
        return hanging;
      };
      let times = 0;
      const waiting = made.lifecycle.use('fast', (engine) => (++times === 1 ? hanging : ask(engine)));
      await expect(made.lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
      made.passTime();
      expect(Number.isFinite(await waiting)).toBe(true);
      expect(made.events).toEqual(['open', 'close', 'open']);
    });
  });
});

describe('what fails in the background', () => {
  const poison = new EngineFailed('decode failed');

  test('a load that fails is told once, with its cause, whoever waits for it or not', async () => {
    const made = world();
    made.failures = 2;
    await Promise.allSettled([made.lifecycle.ready('fast'), made.lifecycle.use('fast', askFast)]);
    const failed = ['model_load', expect.objectContaining({ message: 'no memory' })] as const;
    expect(made.problems).toEqual([failed]);
    // After a failure the outcome is waited for; the next load works and is only set off.
    await expect(made.lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelUnavailable);
    expect(made.problems).toEqual([failed, failed]);
    await made.lifecycle.ready('fast');
    expect(made.problems).toHaveLength(2);
  });

  test('a load whose failure is thrown to whoever began it is told by nobody else', async () => {
    const made = world();
    made.failures = 1;
    await expect(made.lifecycle.load('thrown')).rejects.toMatchObject({
      name: 'ModelUnavailable',
      cause: { message: 'no memory' },
    });
    expect(made.problems).toEqual([]);
  });

  test('a load that a refused request set off, and nobody waits for', async () => {
    const made = world();
    made.planner_failures = 1;
    await expect(made.lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelWarmingUp);
    while (made.lifecycle.status().state === 'loading') await new Promise(setImmediate);
    expect(made.problems).toEqual([['model_load', expect.objectContaining({ message: 'no vocabulary' })]]);
  });

  test('the start of consistent mode', async () => {
    const made = world();
    made.beforeWarmUp = (mode) => (mode === 'consistent' ? Promise.reject(poison) : Promise.resolve());
    await made.lifecycle.ready('fast');
    while (made.lifecycle.status().state !== 'cold') await new Promise(setImmediate);
    expect(made.problems).toEqual([['model_warm_up', poison]]);
  });

  test('an engine that is asked whether it still answers, and does not', async () => {
    const made = world();
    await made.lifecycle.ready('fast');
    await consistentReady(made.lifecycle);
    const late = new EvaluationTimedOut('too long');
    made.beforeWarmUp = () => Promise.reject(poison);
    await made.lifecycle.use('fast', () => Promise.reject(late)).catch(() => {});
    while (made.lifecycle.status().state !== 'cold') await new Promise(setImmediate);
    expect(made.problems).toEqual([['model_probe', poison]]);

    made.beforeWarmUp = () => Promise.resolve();
    await made.lifecycle.ready('fast');
    await consistentReady(made.lifecycle);
    made.beforeWarmUp = () => new Promise<never>(() => {});
    await made.lifecycle.use('fast', () => Promise.reject(late)).catch(() => {});
    made.passTime();
    expect(made.problems.slice(1)).toEqual([
      ['model_probe', expect.objectContaining({ name: 'EngineStuck' })],
    ]);
  });

  test('an engine that does not close', async () => {
    const made = world();
    await made.lifecycle.ready('fast');
    await consistentReady(made.lifecycle);
    const failure = new Error('busy');
    made.close_failure = failure;
    await made.lifecycle.use('fast', () => Promise.reject(poison)).catch(() => {});
    await made.lifecycle.ready('fast');
    expect(made.problems).toEqual([['model_close', failure]]);
  });

  test('a request that no engine answered has the failures of its engines as cause', async () => {
    const { lifecycle } = world();
    await lifecycle.ready('fast');
    const victim = lifecycle.use('fast', () => {
      void lifecycle.use('fast', () => Promise.reject(poison)).catch(() => {});
      return new Promise<never>(() => {});
    });
    const failure = await victim.catch((error: unknown) => error);
    expect(failure).toMatchObject({ cause: { name: 'EngineRetired', cause: poison } });
  });

  test('a close is no failure, during a load neither', async () => {
    const made = world();
    const loading = made.lifecycle.ready('fast').catch(() => {});
    await made.lifecycle.close();
    await loading;
    expect(made.problems).toEqual([]);
  });
});

describe('planning', () => {
  test('needs no weights, and gives the same plans while the model is cold, loaded, and unloaded again', async () => {
    const { lifecycle, events, planner_events, passTime } = world({ idle_unload_ms: 60_000 });
    const cold = await lifecycle.plan(input('fast'));
    expect(cold.plans).toHaveLength(1);
    expect(lifecycle.status().state).toBe('cold');
    expect(events).toEqual([]);
    const engine = await lifecycle.ready('fast');
    expect(await engine.plan(input('fast'))).toEqual(cold);
    expect(await lifecycle.plan(input('fast'))).toEqual(cold);
    passTime();
    expect(lifecycle.status().state).toBe('cold');
    expect(await lifecycle.plan(input('fast'))).toEqual(cold);
    await lifecycle.ready('fast');
    expect(events).toEqual(['open', 'close', 'open']);
    expect(planner_events).toEqual(['open']);
  });

  test('opens one planner for all who come at once', async () => {
    const { lifecycle, planner_events } = world();
    await Promise.all([
      lifecycle.plan(input('fast')),
      lifecycle.use('fast', askFast),
      lifecycle.plan(input('consistent')),
    ]);
    expect(planner_events).toEqual(['open']);
  });

  test('without a planner nothing is planned or loaded, and the next call tries again', async () => {
    const made = world();
    made.planner_failures = 2;
    await expect(made.lifecycle.plan(input('fast'))).rejects.toBeInstanceOf(ModelUnavailable);
    await expect(made.lifecycle.ready('fast')).rejects.toBeInstanceOf(ModelUnavailable);
    expect(made.lifecycle.status()).toEqual({ state: 'cold', load_error: 'no vocabulary' });
    expect(made.events).toEqual([]);
    expect((await made.lifecycle.plan(input('fast'))).plans).toHaveLength(1);
    expect(made.planner_events).toEqual(['open', 'open', 'open']);
  });

  test('a request that the model will not read is rejected as such', async () => {
    const { lifecycle } = world();
    const long = { ...input('fast'), questions: [{ ...NOUL, instructions: 'word '.repeat(1_000) }] };
    await expect(lifecycle.plan(long)).rejects.toBeInstanceOf(PlanRejected);
  });
});

describe('closing', () => {
  test('frees the planner, and nothing is planned any more', async () => {
    const { lifecycle, planner_events, events } = world();
    await lifecycle.plan(input('fast'));
    await lifecycle.close();
    expect(planner_events).toEqual(['open', 'close']);
    expect(events).toEqual([]);
    await expect(lifecycle.plan(input('fast'))).rejects.toBeInstanceOf(ModelUnavailable);
  });

  test('ends a loaded engine and takes nothing more', async () => {
    const { lifecycle, events } = world();
    await lifecycle.ready('fast');
    await lifecycle.close();
    expect(events).toEqual(['open', 'close']);
    await expect(lifecycle.ready('fast')).rejects.toBeInstanceOf(ModelUnavailable);
  });

  test('during a load ends the engine that comes of it', async () => {
    const { lifecycle, events, planner_events } = world();
    const waiting = lifecycle.ready('fast');
    while (events.length === 0) await new Promise(setImmediate);
    const [outcome] = await Promise.allSettled([waiting, lifecycle.close()]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ModelUnavailable) });
    expect(events).toEqual(['open', 'close']);
    expect(planner_events).toEqual(['open', 'close']);
  });
});
