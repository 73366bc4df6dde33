import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eq } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { transact } from '../../db/sqlite/connection.ts';
import { organizations, projects } from '../../db/sqlite/schema.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { systemClock } from '../../src/time/clock.ts';
import { usageOf } from '../ledger/support.ts';
import { contextOn } from '../support/context.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, type TestAccount } from '../support/service.ts';

/** A client's view of one request: the answer's head and, for a 200, its cost. */
export interface Seen {
  readonly request_id: string;
  readonly status: number;
  readonly cost_micros: number | null;
}

/** The keys that the load is sent with. */
export interface LoadKeys {
  /** Credit for everything. */
  readonly rich: string;
  /** Credit for few requests, so that most are refused with 402. */
  readonly poor: string;
  /** A monthly spend limit for few requests, so that most are refused with 429. */
  readonly limited: string;
}

const FEW_REQUESTS_MICROS = 400;
const UNLIMITED = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000 };

/** Fills a new database with the accounts of the load. */
export async function addLoadAccounts(db: Db): Promise<LoadKeys> {
  const accounts = contextOn(db);
  const add = async (): Promise<TestAccount> => {
    const account = await addAccount({ accounts }, { credit_dollars: 25 });
    await setTierSettings(accounts, OPERATOR, account.organization_id, UNLIMITED);
    return account;
  };
  const poor = await add();
  spendAllBut(db, poor, FEW_REQUESTS_MICROS);
  const limited = await add();
  db.update(projects)
    .set({ spend_limit_micros: FEW_REQUESTS_MICROS })
    .where(eq(projects.id, limited.project_id))
    .run();
  return { rich: (await add()).key, poor: poor.key, limited: limited.key };
}

/** Charges the account one request that leaves it that much. */
function spendAllBut(db: Db, account: TestAccount, rest_micros: number): void {
  const ledger = new SqliteLedger(db);
  const { organization_id, project_id, key_id } = account;
  const at_ms = systemClock.now_ms();
  transact(db, () => {
    const { credit_micros } = db
      .select()
      .from(organizations)
      .where(eq(organizations.id, organization_id))
      .get() ?? { credit_micros: 0 };
    const amount_micros = credit_micros - rest_micros;
    const request_id = randomIdentifiers.id('request');
    const asked = { organization_id, project_id, request_id, amount_micros, at_ms };
    const result = ledger.hold(asked, 'proc_test');
    if (!result.held) throw new Error(result.refusal);
    ledger.charge(result.hold, amount_micros, at_ms);
    const owner = { organization_id, project_id, api_key_id: key_id };
    new UsageWriter(db).record(usageOf(owner, request_id, at_ms, 200, amount_micros));
  });
}

/** The kinds of requests, in the order in which every client sends them again and again. */
const TURNS = ['rich', 'poor', 'rich', 'limited', 'rejected', 'rich', 'left', 'rich'] as const;

/** The part of an answer that says what was deducted. */
const CHARGED = Type.Object({ usage: Type.Object({ cost_usd: Type.Number() }) });

/** Clients that send requests in parallel until the server is gone, and note what they saw of each. */
export class Load {
  readonly seen: Seen[] = [];
  readonly #clients: Promise<void>[];
  readonly #keys: LoadKeys;

  constructor(address: string, keys: LoadKeys, clients: number) {
    this.#keys = keys;
    this.#clients = Array.from({ length: clients }, (_, client) =>
      this.#client(`${address}/v1/decisions`, client),
    );
  }

  /** Resolves when every client has noticed that the server is gone. */
  async ended(): Promise<void> {
    await Promise.all(this.#clients);
  }

  async #client(url: string, client: number): Promise<void> {
    for (let turn = client; ; turn += 1) {
      const kind = TURNS[turn % TURNS.length];
      try {
        if (kind === 'left') await this.#leave(url);
        else if (kind === 'rejected') await this.#ask(url, this.#keys.rich, REJECTED_BODY);
        else if (kind !== undefined) await this.#ask(url, this.#keys[kind], BODY);
      } catch {
        return;
      }
    }
  }

  async #ask(url: string, key: string, body: string): Promise<void> {
    const response = await fetch(url, requestOf(key, body));
    const request_id = response.headers.get('x-request-id') ?? 'none';
    const seen = { request_id, status: response.status };
    try {
      const answer: unknown = await response.json();
      const cost_micros = Value.Check(CHARGED, answer)
        ? Math.round(answer.usage.cost_usd * MICROS_PER_DOLLAR)
        : null;
      this.seen.push({ ...seen, cost_micros });
    } catch (error) {
      this.seen.push({ ...seen, cost_micros: null });
      throw error;
    }
  }

  /** A client that goes away without waiting for its answer. */
  async #leave(url: string): Promise<void> {
    const leaving = new AbortController();
    const answer = fetch(url, { ...requestOf(this.#keys.rich, BODY), signal: leaving.signal });
    setImmediate(() => leaving.abort());
    await answer.catch((error: unknown) => {
      if (!leaving.signal.aborted) throw error;
    });
  }
}

const BODY = JSON.stringify(SMALL_REQUEST);
/** Passes the checks of the request, and is refused in the model's step. */
const REJECTED_BODY = JSON.stringify({
  ...SMALL_REQUEST,
  questions: { refund: { type: 'noul', instructions: 'A refund?', criteria: 'yes or no' } },
});

function requestOf(key: string, body: string) {
  return {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  };
}
