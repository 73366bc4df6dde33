import type { SQL } from 'bun';

/** The longest waits of a client. */
export interface ClientBounds {
  /** The wait for the answer to one statement. */
  readonly statement_ms: number;
  /** The wait for the end of one transaction. */
  readonly transaction_ms: number;
}

/** The interval of the checks for overdue statements. */
const LOOK_EVERY_MS = 250;

/** The statements or transactions under way, oldest first. All have the same limit, so only the oldest is checked. */
class UnderWay {
  readonly #started = new Map<number, number>();
  #last_number = 0;

  constructor(private readonly bound_ms: number) {}

  /** Returns the same promise, and counts it as under way until it settles. */
  async until<T>(answer: PromiseLike<T>): Promise<T> {
    this.#last_number += 1;
    const number = this.#last_number;
    this.#started.set(number, performance.now());
    try {
      return await answer;
    } finally {
      this.#started.delete(number);
    }
  }

  isOverdue(): boolean {
    const [oldest_ms] = this.#started.values();
    return oldest_ms !== undefined && performance.now() - oldest_ms > this.bound_ms;
  }

  get count(): number {
    return this.#started.size;
  }

  forget(): void {
    this.#started.clear();
  }
}

/**
 * Returns a client whose statements all end, even if the network is cut or the server hangs. An overdue answer closes
 * all connections: statements under way reject, and later ones connect anew. `underWay` counts transactions and single
 * statements.
 */
export function boundedClient(
  make: () => SQL,
  { statement_ms, transaction_ms }: ClientBounds,
): { readonly client: SQL; readonly underWay: () => number } {
  let current = make();
  const statements = new UnderWay(statement_ms);
  const transactions = new UnderWay(transaction_ms);
  let was_overdue = false;
  const look = () => {
    const is_overdue = statements.isOverdue() || transactions.isOverdue();
    // A process that was paused reads the answers that have arrived before the second check.
    const is_cut = is_overdue && was_overdue;
    was_overdue = is_overdue && !is_cut;
    if (!is_cut) return;
    statements.forget();
    transactions.forget();
    const overdue = current;
    current = make();
    // Nothing is lost: the server rolls back, and callers get an error.
    overdue.close({ timeout: 0 }).catch(() => undefined);
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  timer.unref();

  /** A statement begins when it is awaited, or when its values are requested. */
  const watched = (statement: ReturnType<SQL['unsafe']>): ReturnType<SQL['unsafe']> =>
    new Proxy(statement, {
      get(_, name) {
        if (name === 'then') {
          return <A, B>(onResult: (result: unknown) => A, onError: (error: unknown) => B) =>
            statements.until(statement).then(onResult, onError);
        }
        if (name === 'values') return () => statements.until(statement.values());
        return bound(statement, name);
      },
    });

  const client = new Proxy(current, {
    apply: (_, __, args: Parameters<SQL>) => current(...args),
    get(_, name) {
      if (name === 'unsafe') return (...args: Parameters<SQL['unsafe']>) => watched(current.unsafe(...args));
      if (name === 'begin')
        return (work: SQL.TransactionContextCallback<unknown>) => transactions.until(current.begin(work));
      if (name === 'close') {
        return (...args: Parameters<SQL['close']>) => {
          clearInterval(timer);
          return current.close(...args);
        };
      }
      return bound(current, name);
    },
  });
  return { client, underWay: () => statements.count + transactions.count };
}

/** Returns a property of the object. Methods are bound to the object and not to its proxy. */
function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name);
  return typeof value === 'function' ? value.bind(target) : value;
}
