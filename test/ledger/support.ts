import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Db, openDatabase } from '../../db/connection.ts';
import { apiKeys, organizations, payments, projects } from '../../db/schema.ts';
import type { UsageRecord } from '../../src/usage/usage.ts';

/** A temporary folder with a real database file, gone when disposed. */
export class TemporaryDatabase implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
  #crashes = 0;
  #path = join(this.directory, '0.db');
  #db = openDatabase(this.#path);
  readonly #abandoned: Db[] = [];

  /** The connection of the process that lives now. */
  get db(): Db {
    return this.#db;
  }

  get path(): string {
    return this.#path;
  }

  /**
   * Goes on as a new process does after the old one was killed at this instant: on a copy of the files as they are,
   * because a connection cannot be closed like that while its statements live.
   */
  crash(): Db {
    const path = join(this.directory, `${++this.#crashes}.db`);
    for (const suffix of ['', '-wal']) {
      if (existsSync(this.#path + suffix)) copyFileSync(this.#path + suffix, path + suffix);
    }
    this.#abandoned.push(this.#db);
    this.#path = path;
    this.#db = openDatabase(path);
    return this.#db;
  }

  [Symbol.dispose](): void {
    for (const db of [...this.#abandoned, this.#db]) db.$client.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export interface Account {
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
}

/** Inserts an organization without credit, a project in it without a limit, and a key of that project. */
export function addAccount(db: Db, name: string): Account {
  const account = { organization_id: `org_${name}`, project_id: `proj_${name}`, api_key_id: `key_${name}` };
  db.insert(organizations).values({ id: account.organization_id, name, created_at_ms: 0 }).run();
  addProject(db, account, account.project_id);
  db.insert(apiKeys)
    .values({
      id: account.api_key_id,
      project_id: account.project_id,
      name: `${name}'s key`,
      secret_sha256: name,
      display_prefix: 'sk_svc_01234',
      created_at_ms: 0,
    })
    .run();
  return account;
}

/** Inserts another project of the account's organization. */
export function addProject(db: Db, account: Account, id: string): void {
  db.insert(projects)
    .values({ id, organization_id: account.organization_id, name: id, created_at_ms: 0 })
    .run();
}

/** Inserts the completed payment that a top-up or refund of the ledger belongs to. */
export function addPayment(
  db: Db,
  account: Account,
  id: string,
  kind: 'top_up' | 'refund',
  amount_micros: number,
): void {
  db.insert(payments)
    .values({
      id,
      organization_id: account.organization_id,
      provider: 'manual',
      external_id: id,
      kind,
      amount_micros,
      status: 'completed',
      created_at_ms: 0,
    })
    .run();
}

/** The usage row of a request that was answered at that cost, or that failed with another status. */
export function usageOf(
  account: Account,
  request_id: string,
  time_ms: number,
  status: number,
  cost_micros: number,
): UsageRecord {
  return {
    ...account,
    request_id,
    time_ms,
    model: 'decision-1',
    mode: 'fast',
    endpoint: '/v1/decisions',
    status,
    questions: status === 200 ? 1 : 0,
    input_tokens: 2 * cost_micros,
    cost_micros,
    latency_ms: 1.5,
  };
}

/** The seed of this run's property tests: from the environment to repeat a run, else new, and printed. */
export function propertySeed(name: string): number {
  const given = process.env.PROPERTY_SEED;
  const seed = given === undefined ? crypto.getRandomValues(new Int32Array(1))[0] : Number(given);
  if (seed === undefined || !Number.isInteger(seed))
    throw new TypeError(`PROPERTY_SEED=${given} is no integer`);
  console.log(`${name}: PROPERTY_SEED=${seed}`);
  return seed;
}
