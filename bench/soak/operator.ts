import { join } from 'node:path';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { textField } from '../../test/cli/support.ts';
import type { Accounts } from './accounts.ts';
import type { Backup } from './books.ts';
import type { Clients } from './clients.ts';
import type { Client, Observed } from './observed.ts';
import { validRequest } from './requests.ts';
import type { Served } from './served.ts';

/** The times of actions, as shares of the whole time. Most of it is one long life of the service. */
const KILLS = [0.1, 0.22, 0.9];
const BACKUPS = [0.05, 0.2, 0.4, 0.6, 0.8, 0.95];
const RELOADS = [0.15, 0.3, 0.45, 0.55, 0.7, 0.85];

/** The cache is full within a minute, so that later growth is no cache. */
const PREFIX_CACHE_MEGABYTES = 32;
/** The pause between two rounds of keys and top-ups. */
const ROUND_MS = 5_000;
/** The longest time that a revoked key still works (contract: lookups are cached 60 seconds). */
const REVOKED_WITHIN_MS = 60_000;
const TOP_UP_DOLLARS = 5;
/** The time with a queue so short that requests are refused. */
const SHORT_QUEUE_MS = 3_000;

/** Returns the service's settings with a queue of that length. The other value changes with every reload. */
export function settings(queue_limit = 512, evaluation_timeout = 300): string {
  return `[model]
prefix_cache = ${PREFIX_CACHE_MEGABYTES}
queue_limit = ${queue_limit}
evaluation_timeout = ${evaluation_timeout}
`;
}

/** Does the operator's work on the service, and kills it, until `isOver`. */
export class Operator {
  readonly backups: Backup[] = [];
  readonly done = new Map<string, number>();
  top_ups_micros = 0;
  /** Clients that use revoked keys until they are refused. */
  readonly #revoked: Promise<void>[] = [];

  constructor(
    private readonly served: Served,
    private readonly observed: Observed,
    private readonly accounts: Accounts,
    private readonly clients: Clients,
    private readonly isOver: () => boolean,
  ) {}

  /** Resolves when everything is done. Failures become complaints. */
  async run(from_ms: number, length_ms: number): Promise<void> {
    const timeline = [
      ...KILLS.map((at) => ({ at, what: 'kills', act: () => this.#kill() })),
      ...BACKUPS.map((at) => ({ at, what: 'backups', act: () => this.#backUp() })),
      ...RELOADS.map((at) => ({ at, what: 'reloads', act: () => this.#reload(Math.round(300 + at * 100)) })),
    ].toSorted((a, b) => a.at - b.at);
    const events = async () => {
      for (const { at, what, act } of timeline) {
        await this.#pause(from_ms + at * length_ms - Date.now());
        if (this.isOver()) return;
        await this.#try(what, act);
      }
    };
    const rounds = async () => {
      while (!this.isOver()) {
        await this.#try('top-ups', () => this.#topUp());
        await this.#try('keys', () => this.#changeKeys());
        await this.#pause(ROUND_MS);
      }
    };
    await Promise.all([events(), rounds()]);
    await Promise.all(this.#revoked);
  }

  async #try(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
      this.done.set(what, (this.done.get(what) ?? 0) + 1);
    } catch (error) {
      this.observed.complain(`${what}: ${error instanceof Error ? error.message : error}`);
    }
  }

  async #kill(): Promise<void> {
    await this.served.kill();
    await this.served.start(settings());
  }

  async #backUp(): Promise<void> {
    const file = join(this.served.root, `backup-${this.backups.length + 1}.sqlite.zst`);
    const begun_ms = Date.now();
    await this.served.tds(['backup', file]);
    this.backups.push({ file, begun_ms });
  }

  /**
   * Reloads three times: a wrong file changes nothing, a short queue refuses, and a long one accepts everything again.
   */
  async #reload(evaluation_timeout: number): Promise<void> {
    if (await this.served.reload('[model]\nqueue_limit = many\n')) throw new Error('A wrong file was taken.');
    const was_full = this.observed.total('502 model_unavailable');
    const took_short = await this.served.reload(settings(4, evaluation_timeout), true);
    await this.#pause(SHORT_QUEUE_MS);
    const took_long = await this.served.reload(settings(512, evaluation_timeout));
    if (!took_short || !took_long) throw new Error('A file in order was not taken.');
    if (this.observed.total('502 model_unavailable') === was_full)
      throw new Error('A short queue refused nobody.');
  }

  /** Adds credit by hand, and confirms a payment. */
  async #topUp(): Promise<void> {
    const { organizations } = this.accounts;
    const organization = organizations[(this.done.get('top-ups') ?? 0) % organizations.length] ?? '';
    const amount = String(TOP_UP_DOLLARS);
    await this.served.tds(['org', 'credit', organization, amount]);
    const payment = await this.served.tds(['credit', 'checkout', organization, amount]);
    await this.served.tds(['credit', 'confirm', textField(payment, 'payment_id')]);
    this.top_ups_micros += 2 * TOP_UP_DOLLARS * MICROS_PER_DOLLAR;
  }

  /** Checks that a new key works at once, and a revoked one for a minute at most. */
  async #changeKeys(): Promise<void> {
    const project_id = this.accounts.changing_project_id;
    const created = await this.served.tds(['key', 'create', project_id, `Key ${Date.now()}`]);
    const client = { kind: 'new key', key: textField(created, 'key'), project_id };
    const answer = await this.clients.askValid(client, validRequest(0));
    if (answer?.status === 401) this.observed.complain('A new key was refused.');
    await this.served.tds(['key', 'revoke', textField(created, 'id')]);
    this.#revoked.push(this.#useRevoked({ ...client, kind: 'revoked key' }, Date.now()));
  }

  async #useRevoked(client: Client, revoked_ms: number): Promise<void> {
    while (!this.isOver()) {
      const answer = await this.clients.askValid(client, validRequest(0));
      if (answer?.status === 401) return;
      if (answer !== null && answer.sent_ms > revoked_ms + REVOKED_WITHIN_MS)
        this.observed.complain(
          `A key got ${answer.status} ${answer.sent_ms - revoked_ms} ms after it was revoked.`,
        );
      await this.#pause(ROUND_MS);
    }
  }

  /** Waits, but no longer than the soak goes on. */
  async #pause(for_ms: number): Promise<void> {
    for (const end_ms = Date.now() + for_ms; Date.now() < end_ms && !this.isOver(); ) await Bun.sleep(100);
  }
}
