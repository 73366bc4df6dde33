import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { PostgresDatabase } from '../../db/postgres/postgres-database.ts';
import type { Db } from '../../db/sqlite/connection.ts';
import type { GroupCommitOptions } from '../../db/sqlite/group-commit.ts';
import { SqliteDatabase } from '../../db/sqlite/sqlite-database.ts';
import { type DecisionEngine, type DecisionPlanner, openPlanner } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { createOrganization, setTierSettings } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import type { BodyLimits } from '../../src/http/body-bytes.ts';
import { type RunningServer, type ServerTimeouts, startServer } from '../../src/http/server.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import type { Metrics } from '../../src/observability/metrics.ts';
import type { Tracing } from '../../src/observability/tracing.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import type { PaymentProvider } from '../../src/payments/provider.ts';
import type { EngineLifecycle } from '../../src/served-models/engine-lifecycle.ts';
import type { LifecycleState } from '../../src/served-models/model-answerer.ts';
import { openService, type Service, type ServiceParts } from '../../src/service.ts';
import type { Database } from '../../src/store/database.ts';
import { MovableClock } from './clock.ts';
import { eventually } from './eventually.ts';
import { type Everything, everythingInPostgres, everythingInSqlite } from './everything.ts';
import { testDatabase } from './postgres.ts';
import { openMigrated } from './sqlite-database.ts';
import { TINY_WEIGHTS } from './tiny-weights.ts';

/** A real service: a database file, weights, a port. */
export interface TestService {
  readonly directory: string;
  /** Only where the database is a file. */
  readonly db: Db;
  readonly database: Database;
  /** Where its rows lie. */
  readonly rows: StoredRows;
  /** Runs a statement that both databases understand, outside of the store. */
  execute(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Everything that is stored, but for what nodes note of themselves. */
  everything(): Promise<Everything>;
  readonly clock: MovableClock;
  readonly accounts: AccountContext;
  readonly service: Service;
  readonly server: RunningServer;
  /** Sends a request to the service's port. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

export interface TestAccount {
  readonly organization_id: string;
  readonly project_id: string;
  readonly key_id: string;
  readonly key: string;
}

export interface TestServiceOptions {
  /** True for the embedded weights, where answers, token counts or texts matter; a tiny model's by default. */
  readonly embedded?: boolean;
  /** Changes the model's engine, which is loaded once for the whole test run. */
  readonly openEngine?: OpenEngine;
  /** Opens other models. */
  readonly openPlanner?: ServiceParts['openPlanner'];
  /** The address of a PostgreSQL database with the service's schema; a new SQLite file by default. */
  readonly postgres_url?: string;
  /** A database directory to go on with, as after a restart; it is kept at the end. */
  readonly directory?: string;
  readonly clock?: MovableClock;
  readonly payment_provider?: PaymentProvider;
  /** Where log lines go; nowhere by default. */
  readonly log?: Log;
  /** The metrics; none by default. */
  readonly metrics?: Metrics;
  /** The tracing; none by default. */
  readonly tracing?: Tracing;
  /** The free bytes of the disk, in place of the file system's. */
  readonly freeBytes?: () => Promise<number>;
  /** False serves no API reference. */
  readonly api_reference?: boolean;
  readonly body_limits?: Partial<BodyLimits>;
  /** Does not load the model before the first request. */
  readonly cold?: boolean;
  /** How writes wait for a lock that another process has. */
  readonly writes?: GroupCommitOptions;
  /** Requests that may be at the model, and milliseconds that one may take there. */
  readonly queue_limit?: number;
  readonly evaluation_ms?: number;
  /** Usage rows of rejected requests that an organization may leave in a day. */
  readonly rejected_rows_per_day?: number;
  /** How lines of batches wait; by the machine's timers by default. */
  readonly pause?: ServiceParts['pause'];
  /** Bounds of upstreams. */
  readonly upstreams?: ServiceParts['upstreams'];
  /** The parts of the console; none by default. */
  readonly console?: ServiceParts['console'];
  /** Milliseconds that a stop lets requests finish. */
  readonly drain_ms?: number;
  /** The time limits of clients, where they are not the service's own. */
  readonly timeouts?: Partial<ServerTimeouts>;
}

/** Between two looks at something that another part of the process is about to do. */
export const POLL_MS = 5;

/** A time before which no test begins its rate windows. */
const WINDOWS_BEGIN_MS = Date.UTC(2026, 0, 1);

/** True if services use a new PostgreSQL database by default, so that whole test files run on it. */
export const IS_ON_POSTGRES = process.env.TDS_TEST_DATABASE === 'postgres';

/** For `setDefaultTimeout` of a test file: loading the model takes seconds, and more on a busy machine. */
export const MODEL_TEST_TIMEOUT_MS = 120_000;

type OpenEngine = (engine: DecisionEngine) => DecisionEngine | Promise<DecisionEngine>;

/** A model that is loaded once: closing its parts does nothing, because other services still use them. */
class SharedModel {
  readonly #weights: { readonly model_path?: string };
  #planner: Promise<DecisionPlanner> | undefined;
  #engine: Promise<DecisionEngine> | undefined;

  constructor(weights: { readonly model_path?: string } = {}) {
    this.#weights = weights;
  }

  #opened(): Promise<DecisionPlanner> {
    this.#planner ??= openPlanner({ gpu: false, threads: 1, ...this.#weights });
    return this.#planner;
  }

  /** The planner, which opens engines as `open` makes them of the model's. */
  async planner(open: OpenEngine = (engine) => engine): Promise<DecisionPlanner> {
    const planner = await this.#opened();
    return {
      plan: (input) => planner.plan(input),
      openEngine: async () => await open(await this.engine()),
      close: () => Promise.resolve(),
    };
  }

  async engine(): Promise<DecisionEngine> {
    this.#engine ??= this.#opened().then((planner) => planner.openEngine());
    const engine = await this.#engine;
    return {
      facts: engine.facts,
      plan: (input) => engine.plan(input),
      evaluate: (plan, options) => engine.evaluate(plan, options),
      ...(engine.counts === undefined ? {} : { counts: engine.counts.bind(engine) }),
      close: () => Promise.resolve(),
    };
  }
}

export const EMBEDDED_MODEL = new SharedModel();
/** Answers in a sixth of the time, and counts each byte as a token. */
export const TINY_MODEL = new SharedModel({ model_path: TINY_WEIGHTS });

/** The database of a test service. */
export type StoredRows =
  | { readonly of: 'sqlite'; readonly db: Db }
  | { readonly of: 'postgres'; readonly db: PostgresDatabase['db'] };

/** Runs a statement that both databases understand, outside of every store. */
export async function execute(
  { of, db }: StoredRows,
  statement: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  if (of === 'postgres') return await db.execute(sql.raw(statement));
  return db.$client.query<Record<string, unknown>, []>(statement).all();
}

/** Everything that is stored, but for what nodes note of themselves. */
function everythingIn({ of, db }: StoredRows): Promise<Everything> {
  return of === 'postgres' ? everythingInPostgres(db) : Promise.try(() => everythingInSqlite(db));
}

async function openStored(
  directory: string,
  { writes }: TestServiceOptions,
  clock: MovableClock,
  postgres_url: string | undefined,
): Promise<{ readonly database: Database; readonly rows: StoredRows }> {
  if (postgres_url === undefined) {
    const db = openMigrated(join(directory, 'tds.sqlite'));
    return { database: new SqliteDatabase(db, writes), rows: { of: 'sqlite', db } };
  }
  const database = await PostgresDatabase.open({
    url: postgres_url,
    connections: 10,
    version: 'test',
    now_ms: () => clock.now_ms(),
    // The clock that only goes on, as the database's does; its beginning is of no meaning.
    windows_time_us: () => (WINDOWS_BEGIN_MS + clock.monotonic_ms()) * 1_000,
  });
  return { database, rows: { of: 'postgres', db: database.db } };
}

/** Starts a service on a fresh directory and a free port. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'tds-test-'));
  const clock = options.clock ?? new MovableClock();
  const own = options.postgres_url === undefined && IS_ON_POSTGRES ? await testDatabase() : null;
  const { database, rows } = await openStored(directory, options, clock, own?.url ?? options.postgres_url);
  const model = options.embedded === true ? EMBEDDED_MODEL : TINY_MODEL;
  const service = await openService({
    database,
    openPlanner: options.openPlanner ?? (() => model.planner(options.openEngine)),
    idle_unload_ms: 0,
    ...(options.queue_limit === undefined ? {} : { queue_limit: options.queue_limit }),
    ...(options.rejected_rows_per_day === undefined
      ? {}
      : { rejected_rows_per_day: options.rejected_rows_per_day }),
    ...(options.evaluation_ms === undefined ? {} : { evaluation_ms: options.evaluation_ms }),
    ...(options.upstreams === undefined ? {} : { upstreams: options.upstreams }),
    pause: options.pause,
    clock,
    identifiers: randomIdentifiers,
    log: options.log ?? createLog('silent'),
    payment_provider: options.payment_provider ?? null,
    metrics: options.metrics,
    tracing: options.tracing,
    freeBytes: options.freeBytes,
    own_url: () => server.address,
    api_reference: options.api_reference ?? true,
    console: options.console,
    ...(options.body_limits === undefined ? {} : { body_limits: options.body_limits }),
  });
  if (options.cold !== true) await untilReady(service);
  const server = await startServer(
    service,
    { host: '127.0.0.1', port: 0 },
    {
      drain_ms: options.drain_ms,
      ...(options.timeouts === undefined ? {} : { timeouts: options.timeouts }),
    },
  );
  return {
    directory,
    get db() {
      if (rows.of !== 'sqlite') throw new Error('This service is on PostgreSQL.');
      return rows.db;
    },
    database,
    rows,
    execute: (statement) => execute(rows, statement),
    everything: () => everythingIn(rows),
    clock,
    accounts: { store: service.services.store, clock, identifiers: randomIdentifiers },
    service,
    server,
    fetch: (path, init) => fetch(`${server.address}${path}`, init),
    async close() {
      await server.stop();
      await service.close();
      await database.close();
      await own?.[Symbol.asyncDispose]();
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Loads the default model and waits until it answers in both modes. */
export async function untilReady(service: Service): Promise<void> {
  await service.loadModels();
  await eventually(() => stateOf(service) === 'ready');
}

/** The life of a model of the catalog. */
export function lifecycleOf({ services: { models } }: Service, id = 'decision-1'): EngineLifecycle {
  const lifecycle = models.lifecycle(id);
  if (lifecycle === undefined) throw new Error(`${id} is not served`);
  return lifecycle;
}

export function stateOf(service: Service, id?: string): LifecycleState {
  return lifecycleOf(service, id).status().state;
}

/** An organization with that much credit and at least that tier, its Default project and a key. */
export async function addAccount(
  { accounts }: Pick<TestService, 'accounts'>,
  given: { readonly credit_dollars?: number; readonly tier?: number } = {},
): Promise<TestAccount> {
  const organization = await createOrganization(accounts, OPERATOR, { name: 'Test organization' });
  const credit_micros = Math.round((given.credit_dollars ?? 25) * MICROS_PER_DOLLAR);
  if (credit_micros > 0) {
    await creditByHand(accounts, OPERATOR, {
      organization_id: organization.id,
      amount_micros: credit_micros,
    });
  }
  if (given.tier !== undefined) {
    await setTierSettings(accounts, OPERATOR, organization.id, { minimum_tier: given.tier });
  }
  const project_id = organization.default_project_id;
  const { id, key } = await createKey(accounts, OPERATOR, { project_id, name: 'Test key' });
  return { organization_id: organization.id, project_id, key_id: id, key };
}

/** An organization that no rate limit stops, with that many micro-dollars. */
export async function addRichlyLimited(
  service: Pick<TestService, 'accounts'>,
  credit_micros: number,
): Promise<TestAccount> {
  const account = await addAccount(service, { credit_dollars: 0 });
  const { organization_id } = account;
  await creditByHand(service.accounts, OPERATOR, { organization_id, amount_micros: credit_micros });
  await setTierSettings(service.accounts, OPERATOR, organization_id, {
    minimum_tier: 1,
    requests_per_minute: 1_000_000,
    tokens_per_minute: 1_000_000_000,
  });
  return account;
}
