import { Database } from 'bun:sqlite';
import { once } from 'node:events';
import { join } from 'node:path';
import type { DecisionEngine } from '../../native/engine.ts';
import type { TestService } from './service.ts';

/**
 * Takes a table of the running service's database away, by another connection as another process would, does `work`,
 * and puts the table back.
 */
export async function withoutTable<T>(
  service: Pick<TestService, 'directory'> & Partial<Pick<TestService, 'rows' | 'execute'>>,
  table: string,
  work: () => Promise<T>,
): Promise<T> {
  if (service.rows?.of === 'postgres') {
    await service.execute?.(`ALTER TABLE ${table} RENAME TO ${table}_away`);
    return await work().finally(() => service.execute?.(`ALTER TABLE ${table}_away RENAME TO ${table}`));
  }
  const putBack = takeTableAway(service.directory, table);
  try {
    return await work();
  } finally {
    putBack();
  }
}

/** The same without an end: returns what puts the table back. */
export function takeTableAway(directory: string, table: string): () => void {
  rename(directory, table, `${table}_away`);
  return () => rename(directory, `${table}_away`, table);
}

function rename(directory: string, from: string, to: string): void {
  const other = new Database(join(directory, 'tds.sqlite'));
  try {
    other.run('PRAGMA busy_timeout = 5000');
    other.run(`ALTER TABLE ${from} RENAME TO ${to}`);
  } finally {
    other.close();
  }
}

/** A point that work waits at until a test lets it go on. */
export class Gate {
  readonly #reached = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();

  /** Called by the work: waits until the gate is open. */
  async pass(): Promise<void> {
    this.#reached.resolve();
    await this.#opened.promise;
  }

  /** Does work behind the gate. */
  readonly hold: Around = async (run) => {
    await this.pass();
    return await run();
  };

  /** Resolves when the work has come to the gate. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#opened.resolve();
  }
}

type Evaluate = DecisionEngine['evaluate'];

/** A test's wrapper of an evaluation; `run` evaluates. */
export type Around = (
  run: () => ReturnType<Evaluate>,
  options: Parameters<Evaluate>[1],
) => ReturnType<Evaluate>;

/** The engine, with `around` about each of its evaluations. */
export function intercepted(engine: DecisionEngine, around: Around): DecisionEngine {
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    evaluate: (plan, options) => around(() => engine.evaluate(plan, options), options),
    close: () => engine.close(),
  };
}

/** An engine whose requests wait at the gate. */
export function waitingAt(engine: DecisionEngine, gate: Gate): DecisionEngine {
  return intercepted(engine, async (run, { scope }) => {
    if (scope !== 'warm-up') await gate.pass();
    return await run();
  });
}

/** An engine whose requests go on only once their client is gone. `begun` is called for each. */
export function goingOnWithoutClient(engine: DecisionEngine, begun: () => void): DecisionEngine {
  return intercepted(engine, async (run, { scope, signal }) => {
    if (scope !== 'warm-up' && signal !== undefined) {
      begun();
      await once(signal, 'abort');
    }
    return await run();
  });
}

/** The engine, which is given one plan at a time, with `around` about each of a request's plans. */
export function onePlanAtATime(
  engine: DecisionEngine,
  around: <Result>(compute: () => Promise<Result>) => Promise<Result>,
): DecisionEngine {
  return {
    facts: engine.facts,
    plan: (input) => engine.plan(input),
    evaluate: (plan, { schedulePlan, ...options }) =>
      engine.evaluate(plan, {
        ...options,
        schedulePlan:
          schedulePlan &&
          ((scheduled, compute, signal) =>
            schedulePlan({ ...scheduled, decoder_tokens: 1 }, () => around(compute), signal)),
      }),
    close: () => engine.close(),
  };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    else signal?.addEventListener('abort', () => resolve(), { once: true });
  });
}
