import { expect, test } from 'bun:test';
import { EngineOverloaded, EvaluationFailed } from '../../../native/errors.ts';
import { SerialQueue } from '../../../native/evaluators/serial-queue.ts';

interface Piece {
  readonly started: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<string>;
}

/** Work that ends when told to, once it has started, and a record of what was started. */
function gatedWork() {
  const started: string[] = [];
  const pieces = new Map<string, Piece>();
  const piece = (name: string): Piece => {
    const known = pieces.get(name) ?? {
      started: Promise.withResolvers<void>(),
      ended: Promise.withResolvers<string>(),
    };
    pieces.set(name, known);
    return known;
  };
  return {
    started,
    work: (name: string) => () => {
      started.push(name);
      piece(name).started.resolve();
      return piece(name).ended.promise;
    },
    end: async (name: string) => {
      await piece(name).started.promise;
      piece(name).ended.resolve(name);
    },
    fail: async (name: string) => {
      await piece(name).started.promise;
      piece(name).ended.reject(new Error(name));
    },
  };
}

test('work runs one piece at a time, first come first served, and a failure is its own', async () => {
  const { started, work, end, fail } = gatedWork();
  const queue = new SerialQueue(10);
  const first = queue.run(work('first'));
  const second = queue.run(work('second'));
  const third = queue.run(work('third'));
  expect(started).toEqual(['first']);
  await end('first');
  expect(await first).toBe('first');
  await fail('second');
  expect(started).toEqual(['first', 'second']);
  await expect(second).rejects.toThrow('second');
  await end('third');
  expect(await third).toBe('third');
  const fourth = queue.run(work('fourth'));
  await end('fourth');
  expect(await fourth).toBe('fourth');
  expect(started).toEqual(['first', 'second', 'third', 'fourth']);
});

test('more than the bound may not wait, and a place is free again when work starts or is aborted', async () => {
  const { work, end } = gatedWork();
  const queue = new SerialQueue(2);
  const aborted = new AbortController();
  const running = queue.run(work('running'));
  const waiting = queue.run(work('waiting'), aborted.signal);
  const next = queue.run(work('next'));
  await expect(queue.run(work('refused'))).rejects.toBeInstanceOf(EngineOverloaded);
  aborted.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  const last = queue.run(work('last'));
  await expect(queue.run(work('refused'))).rejects.toBeInstanceOf(EngineOverloaded);
  for (const [name, promise] of [
    ['running', running] as const,
    ['next', next] as const,
    ['last', last] as const,
  ]) {
    await end(name);
    expect(await promise).toBe(name);
  }
});

test('what is aborted while it waits is never started; what has started is not disturbed', async () => {
  const { started, work, end } = gatedWork();
  const queue = new SerialQueue(10);
  const running_signal = new AbortController();
  const waiting_signal = new AbortController();
  const running = queue.run(work('running'), running_signal.signal);
  const waiting = queue.run(work('waiting'), waiting_signal.signal);
  waiting_signal.abort(new Error('gone'));
  running_signal.abort(new Error('too late'));
  await expect(waiting).rejects.toThrow('gone');
  await end('running');
  expect(await running).toBe('running');
  await expect(queue.run(work('late'), waiting_signal.signal)).rejects.toThrow('gone');
  expect(started).toEqual(['running']);
});

test('closing rejects what waits, lets the running piece end, and takes nothing more', async () => {
  const { started, work, end } = gatedWork();
  const queue = new SerialQueue(10);
  const running = queue.run(work('running'));
  const waiting = queue.run(work('waiting'));
  const closing = queue.close();
  await expect(waiting).rejects.toBeInstanceOf(EvaluationFailed);
  await expect(queue.run(work('late'))).rejects.toBeInstanceOf(EvaluationFailed);
  await end('running');
  expect(await running).toBe('running');
  await closing;
  expect(started).toEqual(['running']);
});
