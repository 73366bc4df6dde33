import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import type { DecisionEngine } from '../../native/engine.ts';
import { EvaluationFailed } from '../../native/evaluator.ts';
import {
  type LifecycleOptions,
  ModelLifecycle,
  ModelUnavailable,
  ModelWarmingUp,
  type Schedule,
} from '../../native/lifecycle.ts';
import { openEngine } from '../../native/open.ts';
import type { DecisionInput } from '../../native/plan/profile.ts';
import type { Mode } from '../../native/plan/question.ts';
import { writeTinyModel } from './support/gguf.ts';
import { TINY_MARKERS, temporaryDirectory } from './support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(60_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
const lifecycles: ModelLifecycle[] = [];
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(path, TINY_MARKERS);
});
afterAll(async () => {
  for (const lifecycle of lifecycles) await lifecycle.close();
  await directory[Symbol.asyncDispose]();
});

/** What was opened and closed, in order; consistent warm-ups wait for `gate`, opening fails while `failures` last. */
interface World {
  readonly lifecycle: ModelLifecycle;
  readonly events: string[];
  failures: number;
  /** Lets the consistent warm-up of every engine go on. */
  readonly openGate: () => void;
  /** Runs what was scheduled last, if it was not cancelled. */
  readonly passTime: () => void;
  readonly delays_ms: readonly number[];
}

/** A lifecycle of real engines on a generated model, whose time and whose failures are the test's. */
function world(options: Omit<LifecycleOptions, 'open' | 'schedule'> = {}, gated = false): World {
  const events: string[] = [];
  const delays_ms: number[] = [];
  const gate = Promise.withResolvers<void>();
  if (!gated) gate.resolve();
  let due: (() => void) | undefined;
  const schedule: Schedule = (callback, delay_ms) => {
    delays_ms.push(delay_ms);
    due = callback;
    return () => {
      if (due === callback) due = undefined;
    };
  };
  const made: World = {
    lifecycle: new ModelLifecycle({
      ...options,
      schedule,
      open: async () => {
        events.push('open');
        if (made.failures > 0) {
          made.failures -= 1;
          throw new Error('no memory');
        }
        const engine = await openEngine({ model_path: path, gpu: false, threads: 1, context_tokens: 256 });
        return {
          facts: engine.facts,
          plan: (input) => engine.plan(input),
          async evaluate(input, plan, evaluation) {
            if (input.mode === 'consistent' && evaluation.scope === 'warm-up') await gate.promise;
            return await engine.evaluate(input, plan, evaluation);
          },
          close() {
            events.push('close');
            return engine.close();
          },
        };
      },
    }),
    events,
    failures: 0,
    openGate: gate.resolve,
    passTime: () => due?.(),
    delays_ms,
  };
  lifecycles.push(made.lifecycle);
  return made;
}

function input(mode: Mode): DecisionInput {
  return {
    state: 'on',
    questions: [{ type: 'noul', instructions: 'on?', yes: undefined, no: undefined }],
    mode,
  };
}

async function ask(engine: DecisionEngine, mode: Mode = 'fast'): Promise<number> {
  const [scores] = await engine.evaluate(input(mode), await engine.plan(input(mode)), { scope: 'test' });
  return scores?.[0] ?? Number.NaN;
}

const askFast = (engine: DecisionEngine) => ask(engine);

/** Asks again until consistent mode is up. */
async function consistentReady(lifecycle: ModelLifecycle): Promise<void> {
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

  test('consistent mode comes after fast mode, and until then is refused with a time', async () => {
    const { lifecycle, openGate } = world({ retry_after_s: 7 }, true);
    // A consistent request is refused by a cold model too, and loads it.
    await expect(lifecycle.ready('consistent')).rejects.toBeInstanceOf(ModelWarmingUp);
    expect(lifecycle.status().state).toBe('loading');
    await lifecycle.ready('fast');
    expect(lifecycle.status().state).toBe('fast_ready');
    await expect(lifecycle.use('consistent', askFast)).rejects.toMatchObject({ retry_after_s: 7 });
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

describe('recovering', () => {
  test('a failed evaluation reopens the engine, after those who use it are done', async () => {
    const { lifecycle, events } = world();
    const working = Promise.withResolvers<void>();
    const using = lifecycle.use('fast', async (engine) => {
      await working.promise;
      return await ask(engine);
    });
    await lifecycle.ready('fast');
    const failure = new EvaluationFailed('decode failed');
    await expect(lifecycle.use('fast', () => Promise.reject(failure))).rejects.toBe(failure);
    expect(lifecycle.status().state).toBe('cold');
    expect(events).toEqual(['open']);
    // The next request waits for a new engine, which waits for the old one's memory.
    const next = lifecycle.use('fast', askFast);
    working.resolve();
    expect(await next).toBe(await using);
    expect(events).toEqual(['open', 'close', 'open']);
  });

  test('a failure is counted once, and other errors not at all', async () => {
    const { lifecycle, events } = world();
    const failure = new EvaluationFailed('decode failed');
    await lifecycle.use('fast', () => Promise.reject(failure)).catch(() => {});
    await lifecycle.ready('fast');
    lifecycle.reportFailure(failure);
    lifecycle.reportFailure(new Error('something else'));
    await lifecycle.use('fast', () => Promise.reject(new Error('something else'))).catch(() => {});
    expect(events).toEqual(['open', 'close', 'open']);
    lifecycle.reportFailure(new EvaluationFailed('another'));
    await lifecycle.ready('fast');
    expect(events).toEqual(['open', 'close', 'open', 'close', 'open']);
  });
});

describe('closing', () => {
  test('ends a loaded engine and takes nothing more', async () => {
    const { lifecycle, events } = world();
    await lifecycle.ready('fast');
    await lifecycle.close();
    expect(events).toEqual(['open', 'close']);
    await expect(lifecycle.ready('fast')).rejects.toBeInstanceOf(ModelUnavailable);
  });

  test('during a load ends the engine that comes of it', async () => {
    const { lifecycle, events } = world();
    const waiting = lifecycle.ready('fast');
    const [outcome] = await Promise.allSettled([waiting, lifecycle.close()]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ModelUnavailable) });
    expect(events).toEqual(['open', 'close']);
  });
});
