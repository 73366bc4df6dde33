import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { ScheduledPlan } from '../../native/engine.ts';
import { ModelScheduler, QueueFull } from '../../src/scheduling/model-scheduler.ts';
import { CLIENT_TIMEOUT_MS } from '../../src/time/client-timeout.ts';
import { MovableClock } from '../support/clock.ts';

const DECODER_TOKENS = 500;

/** Requests of one piece each, which end when the test says so. */
function model(requests_max: number) {
  const clock = MovableClock.stopped();
  const scheduler = new ModelScheduler(requests_max, clock);
  const running: {
    readonly name: string;
    readonly plan: ScheduledPlan;
    readonly end: (error?: Error) => void;
  }[] = [];
  return {
    clock,
    running,
    ask(
      name: string,
      tokens: number,
      options: Partial<Pick<ScheduledPlan, 'decoder' | 'expected_ms'>> & {
        signal?: AbortSignal;
        patience?: AbortSignal;
      } = {},
    ): Promise<string> {
      const [organization_id = ''] = name;
      const { decoder = 'small', expected_ms } = options;
      const plan = { tokens, decoder, decoder_tokens: DECODER_TOKENS, expected_ms };
      const work = () => {
        const end = Promise.withResolvers<string>();
        running.push({
          name,
          plan,
          end: (error) => (error === undefined ? end.resolve(name) : end.reject(error)),
        });
        return end.promise;
      };
      const signal = options.signal ?? new AbortController().signal;
      const { patience } = options;
      const scheduled = async () => {
        using slot = await scheduler.take(organization_id, patience);
        return await slot.run(plan, work, signal);
      };
      return scheduled();
    },
    setLimit: (limit: number) => scheduler.setLimit(limit),
    /** Lets the piece that runs for the longest end, `duration_ms` later, and the next ones begin. */
    async endOldest(duration_ms = 0, error?: Error) {
      clock.advance(duration_ms);
      running.shift()?.end(error);
      await settled();
    },
    names: () => running.map(({ name }) => name),
  };
}

/** A model of eight requests that has been measured: two milliseconds a token. */
async function measuredModel() {
  const made = model(8);
  const first = made.ask('a0', 1_000);
  await settled();
  await made.endOldest(2_000);
  await first;
  return made;
}

/** Lets everything happen that waits for nothing but promises. */
function settled(): Promise<void> {
  return new Promise(setImmediate);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

test('so much is given to the model as keeps it busy, and no more', async () => {
  const { ask, names, endOldest } = model(100);
  const all = [ask('a1', 400), ask('a2', 400), ask('a3', 3_000), ask('a4', 100)];
  await settled();
  expect(names()).toEqual(['a1', 'a2']);
  await endOldest();
  expect(names()).toEqual(['a2', 'a3']);
  await endOldest();
  expect(names()).toEqual(['a3']);
  await endOldest();
  expect(names()).toEqual(['a4']);
  await endOldest();
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4']);
});

test('with sixty large requests of one organization waiting, a small one of another is next', async () => {
  const { ask, names, endOldest } = model(200);
  const flood = Array.from({ length: 60 }, (_, index) => ask(`a${index}`, 3_300));
  const small = ask('b', 50);
  await settled();
  expect(names()).toEqual(['a0']);
  await endOldest();
  expect(names()).toEqual(['b', 'a1']);
  await endOldest();
  expect(await small).toBe('b');
  for (let index = 1; index < 60; index++) await endOldest();
  expect(await Promise.all(flood)).toHaveLength(60);
});

test('while a large plan is read, small ones of the same and of other organizations are', async () => {
  const { ask, names, endOldest } = model(100);
  const all = [
    ask('a1', 16_000, { decoder: 'large' }),
    ask('a2', 16_000, { decoder: 'large' }),
    ask('a3', 400),
    ask('b1', 400),
  ];
  await settled();
  expect(names()).toEqual(['a1', 'a3', 'b1']);
  for (let index = 0; index < 4; index++) await endOldest();
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1']);
});

describe('the queue', () => {
  test('that one organization has filled has room for the others', async () => {
    const { ask, endOldest, running } = model(16);
    const flood = Array.from({ length: 20 }, (_, index) => ask(`a${index}`, 300));
    const of_b = Array.from({ length: 20 }, (_, index) => ask(`b${index}`, 300));
    const of_c = ask('c', 300);
    const outcomes = Promise.allSettled([...flood, ...of_b, of_c]);
    await settled();
    while (running.length > 0) await endOldest();
    const taken = (await outcomes).map(({ status }) => status === 'fulfilled');
    expect(taken.slice(0, 20).filter(Boolean)).toHaveLength(8);
    expect(taken.slice(20, 40).filter(Boolean)).toHaveLength(4);
    expect(taken[40]).toBe(true);
    for (const outcome of await outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(QueueFull);
    }
  });

  test('says when there should be a place, from the speed that it has measured', async () => {
    const { ask, endOldest, running } = await measuredModel();
    const all = Promise.allSettled([
      ...Array.from({ length: 4 }, (_, index) => ask(`a${index}`, 1_000)),
      ask('b0', 1_000),
      ask('b1', 1_000),
    ]);
    await settled();
    // Two milliseconds a token, two organizations; three of A's four wait.
    const refused = await Promise.allSettled([ask('a4', 1_000), ask('a5', 1_000)]);
    expect(refused).toMatchObject([{ reason: { retry_after_s: 3 } }, { reason: { retry_after_s: 6 } }]);
    while (running.length > 0) await endOldest(2_000);
    expect((await all).every(({ status }) => status === 'fulfilled')).toBe(true);
  });

  test('tells each one who is refused a later time, until places have become free or all have left', async () => {
    const { ask, endOldest, running } = await measuredModel();
    const fill = () => Array.from({ length: 4 }, (_, index) => ask(`a${index}`, 1_000));
    const refusedFor_s = async () => {
      const [refused] = await Promise.allSettled([ask('a', 1_000)]);
      return refused?.status === 'rejected' ? refused.reason.retry_after_s : null;
    };
    const all = fill();
    await settled();
    // Three of the four wait, for two seconds each.
    expect([await refusedFor_s(), await refusedFor_s()]).toEqual([2, 3]);
    await endOldest(2_000);
    all.push(ask('a4', 1_000));
    await settled();
    expect(await refusedFor_s()).toBe(3);
    for (let count = 0; count < 10; count++) await refusedFor_s();
    while (running.length > 0) await endOldest(2_000);
    all.push(...fill());
    await settled();
    expect(await refusedFor_s()).toBe(2);
    while (running.length > 0) await endOldest(2_000);
    await Promise.all(all);
  });

  test('measures what runs at the same time once', async () => {
    const { ask, endOldest, running } = model(4);
    const all = [ask('a0', 400), ask('a1', 400)];
    await settled();
    await endOldest(800);
    await endOldest();
    all.push(ask('a2', 1_000), ask('a3', 5_000));
    await settled();
    // Two milliseconds a token, and then a fifth less: half of what waits takes 4 s.
    await expect(ask('a4', 10)).rejects.toMatchObject({ retry_after_s: 4 });
    while (running.length > 0) await endOldest();
    await Promise.all(all);
  });

  test('counts of others what is read meanwhile: of batches a quarter as much, of anybody no more than waits', async () => {
    const patience = new AbortController().signal;
    const { ask, endOldest, running, setLimit } = await measuredModel();
    const all = Promise.allSettled([
      ...Array.from({ length: 4 }, (_, index) => ask(`a${index}`, 1_000)),
      ask('a-batch0', 1_000, { patience }),
    ]);
    await settled();
    // Two milliseconds a token; three of the four single requests wait, and the line.
    const refused = await Promise.allSettled([ask('a4', 1_000), ask('a5', 1_000)]);
    expect(refused).toMatchObject([{ reason: { retry_after_s: 2 } }, { reason: { retry_after_s: 4 } }]);
    while (running.length > 0) await endOldest(2_000);
    await all;

    setLimit(4);
    const later = Promise.allSettled([
      ask('a-batch0', 3_000, { patience }),
      ask('a-batch1', 3_000, { patience }),
      ask('b0', 1_000),
    ]);
    await settled();
    // Half of the line that waits, and the whole single request.
    const refused_line = ask('a-batch2', 3_000, { patience: AbortSignal.abort() });
    await expect(refused_line).rejects.toMatchObject({ retry_after_s: 5 });
    while (running.length > 0) await endOldest(6_000);
    await later;
  });

  test('says so before it has measured any, from what the plans should take, without those that left', async () => {
    const { ask, endOldest, running } = model(4);
    const gone = new AbortController();
    const all = Promise.allSettled([
      ask('a0', 16_000, { expected_ms: 40_000 }),
      ask('a1', 16_000, { expected_ms: 40_000 }),
    ]);
    await settled();
    const [refused] = await Promise.allSettled([ask('a2', 10)]);
    expect(refused).toMatchObject({ reason: { retry_after_s: 20 } });
    const leaving = Promise.allSettled([ask('b0', 16_000, { expected_ms: 90_000, signal: gone.signal })]);
    await settled();
    gone.abort(new Error('gone'));
    await leaving;
    while (running.length > 0) await endOldest();
    expect((await all).every(({ status }) => status === 'fulfilled')).toBe(true);
    const later = Promise.allSettled([ask('b0', 10), ask('b1', 10)]);
    await settled();
    expect(await Promise.allSettled([ask('b2', 10)])).toMatchObject([{ reason: { retry_after_s: 1 } }]);
    while (running.length > 0) await endOldest();
    await later;
  });

  test('counts nothing of plans that left, while their organization stays', async () => {
    const { ask, endOldest, setLimit } = model(100);
    const gone = new AbortController();
    const staying = ask('a0', 1_000);
    const leaving = Promise.allSettled(
      Array.from({ length: 10 }, () => ask('a', 10, { expected_ms: 10_000, signal: gone.signal })),
    );
    await settled();
    gone.abort(new Error('gone'));
    await leaving;
    setLimit(1);
    await expect(ask('a1', 10)).rejects.toMatchObject({ retry_after_s: 1 });
    await endOldest();
    await staying;
  });

  test('says no more than the time that clients wait', async () => {
    const { ask, endOldest } = model(4);
    const all = Promise.all([ask('a0', 1_000), ask('a1', 10, { expected_ms: 1e9 })]);
    await settled();
    await expect(ask('a2', 10)).rejects.toMatchObject({ retry_after_s: CLIENT_TIMEOUT_MS / 1_000 });
    await endOldest();
    await endOldest();
    await all;
  });
});

test('who leaves while waiting is never begun; who leaves while running frees the decoder', async () => {
  const { ask, names, endOldest, running } = model(100);
  const gone = new AbortController();
  const leaving = Promise.allSettled(
    ['a1', 'a2', 'a3', 'a4'].map((name) => ask(name, 1_000, { signal: gone.signal })),
  );
  const staying = ask('a5', 1_000);
  const other = ask('b', 1_000);
  await settled();
  expect(names()).toEqual(['a1']);
  gone.abort(new Error('gone'));
  const reason = expect.objectContaining({ message: 'gone' });
  expect(await leaving).toMatchObject(Array.from({ length: 4 }, () => ({ status: 'rejected', reason })));
  expect(names()).toEqual(['a1', 'b']);
  // The end of what was given up frees nothing twice.
  await endOldest();
  expect(names()).toEqual(['b']);
  await endOldest();
  await endOldest();
  expect(await Promise.all([staying, other])).toEqual(['a5', 'b']);
  expect(running).toEqual([]);
});

test('who has left before is never begun; what waits behind who leaves begins at once', async () => {
  const { ask, names, endOldest } = model(100);
  const gone = new AbortController();
  const left = Promise.allSettled([ask('a', 10, { signal: AbortSignal.abort(new Error('gone')) })]);
  await settled();
  expect(names()).toEqual([]);
  expect(await left).toMatchObject([{ status: 'rejected', reason: { message: 'gone' } }]);
  const first = ask('a', 1_000);
  const leaving = Promise.allSettled([ask('b', 1_000, { signal: gone.signal })]);
  const large = ask('c', 1_000, { decoder: 'large' });
  await settled();
  expect(names()).toEqual(['a']);
  gone.abort();
  await leaving;
  await settled();
  expect(names()).toEqual(['a', 'c']);
  await endOldest();
  await endOldest();
  expect(await Promise.all([first, large])).toEqual(['a', 'c']);
});

test('every request is answered, refused, failed or given up exactly once, within the bounds, and none is forgotten', async () => {
  const REQUESTS_MAX = 12;
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('ask' as const),
        organization: fc.constantFrom('a', 'b', 'c'),
        tokens: fc.integer({ min: 1, max: 2_000 }),
        decoder: fc.constantFrom<ScheduledPlan['decoder']>('small', 'large'),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), fails: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), index: fc.nat(30) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { ask, endOldest, running } = model(REQUESTS_MAX);
      const begun = new Map<string, number>();
      const outcomes = new Map<string, string[]>();
      const clients: { readonly name: string; readonly gone: AbortController }[] = [];
      const open = () => clients.filter(({ name }) => outcomes.get(name)?.length === 0);
      for (const [index, one] of steps.entries()) {
        if (one.kind === 'ask') {
          const name = `${one.organization}${index}`;
          const of_all = open().length;
          const of_own = open().filter((client) => client.name.startsWith(one.organization)).length;
          const gone = new AbortController();
          const ends: string[] = [];
          outcomes.set(name, ends);
          clients.push({ name, gone });
          ask(name, one.tokens, { decoder: one.decoder, signal: gone.signal }).then(
            () => ends.push('answered'),
            (error) => ends.push(error instanceof QueueFull ? 'refused' : messageOf(error)),
          );
          await settled();
          expect(ends.includes('refused')).toBe(of_own >= REQUESTS_MAX - of_all);
        } else if (one.kind === 'end') await endOldest(10, one.fails ? new Error('failed') : undefined);
        else {
          const client = open()[one.index];
          if (client === undefined) continue;
          client.gone.abort(new Error('gone'));
          await settled();
          const at = running.findIndex(({ name }) => name === client.name);
          if (at >= 0) running.splice(at, 1);
          expect(outcomes.get(client.name)).toEqual(['gone']);
        }
        expect(open().length).toBeLessThanOrEqual(REQUESTS_MAX);
        for (const decoder of ['small', 'large'] as const) {
          const inside = running
            .filter(({ plan }) => plan.decoder === decoder)
            .map(({ plan }) => plan.tokens);
          // A decoder is full before its last piece is added, never.
          const before_last = inside.reduce((sum, cost) => sum + cost, 0) - (inside.at(-1) ?? 0);
          expect(before_last).toBeLessThan(DECODER_TOKENS);
        }
        // The model is never idle while a request waits.
        if (open().length > 0) expect(running.length).toBeGreaterThan(0);
        for (const { name } of running) begun.set(name, (begun.get(name) ?? 0) + 1);
      }
      while (running.length > 0) await endOldest(10);
      await settled();
      for (const [name, ends] of outcomes) {
        expect(ends).toHaveLength(1);
        if (ends[0] === 'refused') expect(begun.has(name)).toBe(false);
      }
    }),
    { numRuns: 100 },
  );
});

describe('lines of batches', () => {
  const patience = new AbortController().signal;

  test('get a quarter of what single requests of their organization get, and of any other', async () => {
    const { ask, names, endOldest } = model(1_000);
    const all = Array.from({ length: 100 }, (_, index) => [
      ask(`a-batch${index}`, 500, { patience }),
      ask(`a-single${index}`, 500),
      ask(`b-single${index}`, 500),
    ]).flat();
    await settled();
    const served: string[] = [];
    for (let turn = 0; turn < 90; turn += 1) {
      served.push(...names());
      await endOldest();
    }
    const share = (start: string) => served.filter((name) => name.startsWith(start)).length;
    expect([share('a-batch'), share('a-single'), share('b-single')]).toEqual([10, 40, 40]);
    while (names().length > 0) await endOldest();
    await Promise.all(all);
  });

  test('have all of a model that nobody else asks', async () => {
    const { ask, names, endOldest } = model(100);
    const all = Array.from({ length: 10 }, (_, index) => ask(`a${index}`, 500, { patience }));
    await settled();
    for (let index = 0; index < 10; index += 1) {
      expect(names()).toEqual([`a${index}`]);
      await endOldest();
    }
    await Promise.all(all);
  });

  test('wait for half of the places, and leave the others to single requests', async () => {
    const { ask, names, endOldest } = model(4);
    const lines = Array.from({ length: 10 }, (_, index) => ask(`a-batch${index}`, 100, { patience }));
    await settled();
    expect(names()).toEqual(['a-batch0', 'a-batch1']);
    const single = ask('b', 100);
    await settled();
    expect(names()).toEqual(['a-batch0', 'a-batch1', 'b']);
    while (names().length > 0) await endOldest();
    expect(await single).toBe('b');
    expect(await Promise.all(lines)).toHaveLength(10);
  });

  test('begin when more places are given, and are refused when they are to wait no longer', async () => {
    const { ask, names, setLimit } = model(1);
    const leaving = new AbortController();
    void ask('a0', 100, { patience });
    const [given_up, waiting] = [ask('a1', 100, { patience: leaving.signal }), ask('a2', 100, { patience })];
    void waiting;
    await settled();
    expect(names()).toEqual(['a0']);
    leaving.abort();
    await expect(given_up).rejects.toBeInstanceOf(QueueFull);
    setLimit(4);
    await settled();
    expect(names()).toEqual(['a0', 'a2']);
  });
});
