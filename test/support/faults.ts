import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type { DecisionEngine } from '../../native/engine.ts';
import { embeddedEngine, type TestService } from './service.ts';

/**
 * Takes a table of the running service's database file away, by another connection as another process would, does
 * `work`, and puts the table back.
 */
export async function withoutTable<T>(
  { directory }: Pick<TestService, 'directory'>,
  table: string,
  work: () => Promise<T>,
): Promise<T> {
  rename(directory, table, `${table}_away`);
  try {
    return await work();
  } finally {
    rename(directory, `${table}_away`, table);
  }
}

function rename(directory: string, from: string, to: string): void {
  const other = new Database(join(directory, 'tds.sqlite'));
  try {
    other.run('PRAGMA busy_timeout = 5000');
    // The references of other tables stay as they are, so that the table comes back as it was.
    other.run('PRAGMA legacy_alter_table = ON');
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

  /** Resolves when the work has come to the gate. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#opened.resolve();
  }
}

/** The embedded model, which does `before` each time before it evaluates; what `before` throws it fails with. */
export async function interceptedEngine(
  before: (options: { readonly scope: string; readonly signal?: AbortSignal }) => Promise<void>,
): Promise<DecisionEngine> {
  const engine = await embeddedEngine();
  return {
    ...engine,
    async evaluate(input, plan, options) {
      await before(options);
      return await engine.evaluate(input, plan, options);
    },
  };
}
