import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { type IdempotencyOutcome, IdempotencyQueue } from '../../src/idempotency/queue.ts';
import type { IdempotencyClaim } from '../../src/store/idempotency-records.ts';
import type { KeptAnswer } from '../../src/store/kept-answer.ts';
import { LEDGER_DATABASES, type LedgerDatabase, openLedger } from '../ledger/databases.ts';
import { COST_MICROS, HELD_MICROS, NOW_MS, propertySeed, usageOf } from '../ledger/support.ts';
import { POLL_MS } from '../support/service.ts';

setDefaultTimeout(300_000);

const SEED = propertySeed('idempotency');
const KEYS = 3;
const CLOCK = { now_ms: () => NOW_MS, monotonic_ms: () => performance.now() };

type Step =
  | { readonly kind: 'request'; readonly key: number; readonly body: number }
  | { readonly kind: 'end'; readonly which: number; readonly is_answered: boolean }
  | { readonly kind: 'crash'; readonly in_transaction: boolean };

const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('request' as const),
        key: fc.nat({ max: KEYS - 1 }),
        // Most repeat the first body.
        body: fc.nat({ max: 4 }).map((number) => (number === 0 ? 1 : 0)),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('end' as const),
        which: fc.nat({ max: 9 }),
        is_answered: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('crash' as const), in_transaction: fc.boolean() }),
    },
  ),
  { minLength: 5, maxLength: 30 },
);

/** The answers of clients, and running requests, of a process that may die. */
class History {
  readonly answers = new Map<string, string[]>();
  #running: { readonly decided: PromiseWithResolvers<boolean> }[] = [];
  #requests = 0;
  #life = new AbortController();
  #queue: IdempotencyQueue;
  #sent: Promise<void>[] = [];

  constructor(private readonly database: LedgerDatabase) {
    this.#queue = new IdempotencyQueue(database.store.idempotency, CLOCK);
  }

  request(key: number, body: number): void {
    const claim = {
      api_key_id: this.database.account.api_key_id,
      key_hash: `key ${key}`,
      body_hash: `body ${body}`,
    };
    this.#sent.push(this.#send(claim, this.#life.signal, this.#queue));
  }

  /** Lets one of the requests that run be answered, or fail. */
  async end(which: number, is_answered: boolean): Promise<void> {
    await Bun.sleep(0);
    const [one] = this.#running.splice(which % Math.max(1, this.#running.length), 1);
    one?.decided.resolve(is_answered);
    await Bun.sleep(0);
  }

  async crash(in_transaction: boolean): Promise<void> {
    this.#life.abort();
    // Writes under way at that instant are stored or not.
    this.#running = [];
    await this.database.crash({ in_transaction });
    await this.database.books.recover();
    this.#life = new AbortController();
    this.#queue = new IdempotencyQueue(this.database.store.idempotency, CLOCK);
    this.#sent = [];
  }

  /** Answers all that is still asked for. */
  async finish(): Promise<void> {
    let is_done = false;
    const all = Promise.all(this.#sent).then(() => {
      is_done = true;
    });
    while (!is_done) {
      await this.end(0, true);
      await Bun.sleep(POLL_MS);
    }
    await all;
  }

  async #send(claim: IdempotencyClaim, signal: AbortSignal, queue: IdempotencyQueue): Promise<void> {
    const { books } = this.database;
    const alive = () => !signal.aborted;
    try {
      for (let outcome = await this.#enter(queue, claim, signal); alive(); ) {
        if (outcome.state === 'answered') return this.#answer(claim, outcome.kept.id);
        if (outcome.state !== 'runs') return;
        const is_over = await this.#run(claim, books, alive).finally(outcome.end);
        if (is_over) return;
        outcome = await this.#enter(queue, claim, signal);
      }
    } catch (error) {
      // A process that died answers nobody.
      if (alive()) throw error;
    }
  }

  #enter(queue: IdempotencyQueue, claim: IdempotencyClaim, signal: AbortSignal): Promise<IdempotencyOutcome> {
    return queue.enter(claim, { waits_until_ms: performance.now() + 60_000, signal });
  }

  async #run(
    claim: IdempotencyClaim,
    books: LedgerDatabase['books'],
    alive: () => boolean,
  ): Promise<boolean> {
    const { account } = this.database;
    this.#requests += 1;
    const request_id = `req_${this.#requests}`;
    const held = await books.hold({ ...this.database.request(request_id, HELD_MICROS), claim });
    if (!held.held) return false;
    if (!alive()) return true;
    const decided = Promise.withResolvers<boolean>();
    this.#running.push({ decided });
    const usage = (status: number, cost_micros: number) =>
      usageOf(account, request_id, NOW_MS, status, cost_micros);
    if (await decided.promise) {
      await books.charge(held.hold, COST_MICROS, usage(200, COST_MICROS), usage(503, 0), keptOf(request_id));
      if (alive()) this.#answer(claim, request_id);
    } else await books.release(held.hold, usage(502, 0));
    return true;
  }

  #answer({ key_hash, body_hash }: IdempotencyClaim, id: string): void {
    this.answers.set(key_hash, [...(this.answers.get(key_hash) ?? []), `${body_hash} ${id}`]);
  }
}

function keptOf(id: string): KeptAnswer {
  return {
    id,
    created: 0,
    model: 'decision-1',
    mode: 'fast',
    input_tokens: 8,
    cost_micros: COST_MICROS,
    latency_ms: 1.5,
    numbers: [[0.9]],
  };
}

describe.each(LEDGER_DATABASES)('idempotency keys in $name', (database) => {
  test('each key is charged once at most, and all of its answers are that one, whatever crashes', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence: readonly Step[]) => {
        await using setup = await openLedger(database);
        const history = new History(setup);
        for (const step of sequence) {
          if (step.kind === 'request') history.request(step.key, step.body);
          else if (step.kind === 'end') await history.end(step.which, step.is_answered);
          else await history.crash(step.in_transaction);
        }
        await history.finish();
        // Every key once more: one that was charged says so, and another one is charged now.
        for (let key = 0; key < KEYS; key += 1) for (const body of [0, 1]) history.request(key, body);
        await history.finish();
        const kinds = await setup.kinds();
        expect(kinds.filter((kind) => kind === 'charge')).toHaveLength(KEYS);
        expect(kinds).toHaveLength(2 * KEYS);
        expect(history.answers.size).toBe(KEYS);
        for (const answers of history.answers.values()) expect(new Set(answers).size).toBe(1);
        await setup.expectSettled(KEYS);
      }),
      { seed: SEED, numRuns: database.name === 'SQLite' ? 60 : 12, endOnFailure: true },
    );
  });
});
