import type { ReservedSQL, SQL } from 'bun';
import type { Hold } from '../../src/store/hold.ts';
import { MS_PER_S } from '../../src/time/clock.ts';
import { SchemaRefused } from '../schema-state.ts';
import { executorOn, type PgDb } from './connection.ts';
import { type HoldRow, holdOf } from './ledger-statements.ts';
import { Forbidden, writeLedger } from './ledger-transaction.ts';
import { LEASE_AGE_S, LEASE_S } from './living-nodes.ts';
import { knownMigrations, schemaState } from './migrate.ts';
import { BY_INDEX_ONLY, Session } from './session.ts';

const RENEW_EVERY_MS = 5_000;
/** The interval of the checks for dead nodes. */
const LOOK_EVERY_MS = 5_000;
/** The largest number of holds released in one transaction, because it locks their organizations. */
const RELEASED_AT_ONCE = 500;
/** The longest renewal or check for a dead node. Then it is tried again on a new connection. */
const RENEWAL_MS = 4_000;
/** The time to read answers that arrived while this process was paused. */
const READ_MS = 250;
/** The longest search for holds, or release of some, if the server does not stop it before. */
const RELEASE_STEP_MS = 30_000;

const RELEASE_SETTINGS = [
  "SET lock_timeout = '3s'",
  "SET idle_in_transaction_session_timeout = '4s'",
  // A search for a hold reads the ledger back to it, past all later entries.
  "SET statement_timeout = '20s'",
  // The ledger is read by its index from the end, until all open holds are found. PostgreSQL's statistics expect no
  // hold of a dead node. It would scan the whole ledger in parallel.
  'SET max_parallel_workers_per_gather = 0',
  ...BY_INDEX_ONLY,
];

/** The lock waits for a newer version that is updating the database, whatever it does to this table. */
const BEGIN_REGISTRATION = 'BEGIN; LOCK TABLE nodes IN ROW EXCLUSIVE MODE';

const REGISTER = `
  INSERT INTO nodes (id, lock_key, started_at, renewed_at, version)
  VALUES ($1, $2, clock_timestamp(), clock_timestamp(), $3)
  ON CONFLICT (id) DO UPDATE SET renewed_at = clock_timestamp()`;

/** The condition that a lease has expired. The second parameter is the length of a lease. */
const HAS_RUN_OUT = `${LEASE_AGE_S} > $2`;

const FIND_STALE = `SELECT id FROM nodes WHERE id <> $1 AND ${HAS_RUN_OUT}`;

/** Selects one row with true if the node is dead. The node cannot live again before the transaction ends. */
const KEEP_DEAD = `
  SELECT pg_try_advisory_xact_lock(lock_key) AS is_free FROM nodes
  WHERE id = $1 AND ${HAS_RUN_OUT} FOR UPDATE SKIP LOCKED`;

const REMOVE_DEAD = `
  WITH dead AS (${KEEP_DEAD}) DELETE FROM nodes USING dead WHERE nodes.id = $1 AND dead.is_free`;

/** Counts the registered nodes among these ids. */
const REGISTERED = `
  SELECT count(*)::integer AS nodes FROM nodes
  WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)))`;

/** Newest first, limited by the number of open holds, so that old history is not read. */
const OPEN_HOLDS = `
  SELECT open.* FROM (
    SELECT held.id, held.request_id, held.organization_id, held.project_id, held.month, held.api_key_id,
      held.held_delta_micros, held.process_id
    FROM ledger_entries AS held
    WHERE held.kind = 'hold'
      AND NOT EXISTS (SELECT FROM ledger_entries AS ended WHERE ended.hold_entry_id = held.id)
    ORDER BY held.id DESC
    LIMIT (SELECT coalesce(sum(open_holds), 0)::bigint FROM organizations)
  ) AS open`;

/** The open holds of a node. The first parameter is its id. */
const ALL_HOLDS_OF_NODE = `${OPEN_HOLDS} WHERE open.process_id = $1`;
const HOLDS_OF_NODE = `${ALL_HOLDS_OF_NODE} LIMIT ${RELEASED_AT_ONCE}`;

/** The open holds of processes that never registered, as in a database copied from SQLite. */
const HOLDS_OF_NOBODY = `${OPEN_HOLDS}
  WHERE open.process_id IS NULL OR NOT EXISTS (SELECT FROM nodes WHERE nodes.id = open.process_id)
  LIMIT ${RELEASED_AT_ONCE}`;

/** The times of a node's lease, in milliseconds. */
export interface LeaseTimes {
  readonly lease_ms?: number;
  readonly renew_every_ms?: number;
  readonly look_every_ms?: number;
}

/** The events of this node and of dead nodes that an operator should know. */
export interface NodeEvents {
  /** A renewal of the lease, or a check for dead nodes, failed. It is tried again. */
  readonly onProblem: (error: unknown) => void;
  /** Holds of a dead node were released, or of this node that the database had lost the ends of. */
  readonly onReleased: (node_id: string, holds: number) => void;
}

/** The properties of a node that registers. */
export interface NewNode {
  /** The node's id, which its holds store. */
  readonly id: string;
  readonly version: string;
}

/**
 * Registers this process as a node of the database. It holds an advisory lock on its own connection, and renews a
 * lease. A node is dead when its lock is free and its lease has expired. A paused process keeps its lock. After a
 * failover all locks are gone, and the lease protects the node. All times are those of the database's clock.
 *
 * Any node releases the holds of a dead one, once its own lock's connection is as old as a lease. After an outage all
 * leases have expired, and other nodes need that time to renew theirs. It checks for dead nodes on the same connection:
 * an answer on it proves that the server has not restarted.
 *
 * A newer version updates the database only while no node lives. So a node with its lock or a valid lease has its
 * program's schema. A node that had neither, as after a long outage, compares the schema again.
 */
export class NodeLease {
  readonly id: string;
  readonly #client: SQL;
  readonly #session: Session;
  readonly #version: string;
  /** The migrations at the start. An update of the program may replace the files later. */
  readonly #known = knownMigrations();
  readonly #lock_key = randomLockKey();
  readonly #lease_ms: number;
  readonly #events: NodeEvents;
  #timers: ReturnType<typeof setInterval>[] = [];
  #connection: ReservedSQL | undefined;
  #has_lock = false;
  /** The time of the connection, by `performance.now()`. */
  #connected_ms = 0;
  #renewed_ms = Number.NEGATIVE_INFINITY;
  #renewal: Promise<void> | undefined;
  #look: Promise<number> | undefined;
  #isKnown: ((hold: Hold) => boolean) | null = null;
  /** True from a new registration until the lost ends of this node's own holds are looked for. */
  #may_have_lost = false;
  /** The open holds in this node's name that it did not know at the first look. */
  #unknown: { readonly entry_ids: ReadonlySet<number>; readonly at_ms: number } | null = null;

  private constructor(client: SQL, { id, version }: NewNode, events: NodeEvents, times: LeaseTimes) {
    this.id = id;
    this.#client = client;
    this.#session = new Session(client);
    this.#version = version;
    this.#events = events;
    this.#lease_ms = times.lease_ms ?? LEASE_S * MS_PER_S;
  }

  /**
   * Registers a node, which keeps one connection of the pool. Begins to renew its lease and to check for dead nodes.
   * Rejects as `renew` does.
   */
  static async register(
    db: PgDb,
    node: NewNode,
    events: NodeEvents,
    times: LeaseTimes = {},
  ): Promise<NodeLease> {
    const lease = new NodeLease(db.$client, node, events, times);
    await lease.renew();
    lease.#timers = [
      setInterval(() => void lease.renew().catch(events.onProblem), times.renew_every_ms ?? RENEW_EVERY_MS),
      setInterval(
        () => void lease.releaseDead().catch(events.onProblem),
        times.look_every_ms ?? LOOK_EVERY_MS,
      ),
    ];
    for (const timer of lease.#timers) timer.unref();
    return lease;
  }

  /**
   * Names the open holds that this process knows. After a failover or a restore the database can have others of it,
   * whose ends it has lost. They are released when they are still unknown a lease later.
   */
  knowHolds(isKnown: (hold: Hold) => boolean): void {
    this.#isKnown = isKnown;
  }

  /** Returns true if the lease stays valid for some more seconds. */
  isRenewed(): boolean {
    return performance.now() - this.#renewed_ms < (3 / 4) * this.#lease_ms;
  }

  /** True if this node has its lock. Without it, only the lease keeps the node alive. */
  get hasLock(): boolean {
    return this.#has_lock;
  }

  /**
   * Resolves when the lease stays valid for some more seconds. So no other node releases its holds, and the schema does
   * not change. Rejects as `renew` does.
   */
  async requireRenewed(): Promise<void> {
    if (!this.isRenewed()) await this.renew();
  }

  /**
   * Renews the lease, and takes the lock again if it was lost. Rejects with the errors of PostgreSQL and the client.
   * Rejects with `SchemaRefused` if a newer version updated the database meanwhile. The process is then no node any
   * more.
   */
  renew(): Promise<void> {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /**
   * Releases the open holds of dead nodes, and deletes the nodes. Resolves with the number of holds. Rejects with the
   * errors of PostgreSQL and the client.
   */
  releaseDead(): Promise<number> {
    this.#look ??= this.#releaseDead().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  /** Releases the open holds of unregistered processes, and holds without a process. Resolves with their number. */
  releaseOrphans(): Promise<number> {
    return this.#withSession(async (session) => {
      const { released } = await this.#releaseAll(session, HOLDS_OF_NOBODY, [], isOfNobody);
      return released;
    });
  }

  /** Ends the node, and frees its lock. Deletes its row unless it has open holds, which other nodes then release. */
  async close({ open_holds = 0 }: { readonly open_holds?: number } = {}): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.allSettled([this.#renewal, this.#look]);
    try {
      if (open_holds === 0) await this.#client.unsafe('DELETE FROM nodes WHERE id = $1', [this.id]);
    } catch (error) {
      this.#events.onProblem(error);
    }
    await this.#session.drop();
  }

  async #renew(): Promise<void> {
    for (let is_second = false; ; is_second = true) {
      try {
        await this.#renewOnce();
        return;
      } catch (error) {
        const is_refused = error instanceof SchemaRefused;
        if (is_refused) this.#renewed_ms = Number.NEGATIVE_INFINITY;
        // The connection may have broken long ago, unnoticed.
        const may_be_old = this.#connection !== undefined && !is_second && !is_refused;
        await this.#disconnect();
        if (!may_be_old) throw error;
      }
    }
  }

  async #renewOnce(): Promise<void> {
    const began_ms = performance.now();
    await cutWhenLate(this.#session, RENEWAL_MS, async () => {
      const connection = await this.#session.connect();
      if (connection !== this.#connection) {
        this.#connection = connection;
        this.#may_have_lost = this.#connected_ms > 0;
        this.#unknown = null;
        this.#connected_ms = performance.now();
        this.#has_lock = false;
      }
      if (this.#has_lock) await this.#writeLease(connection);
      else this.#has_lock = await this.#register(connection);
      this.#renewed_ms = began_ms;
    });
  }

  /**
   * Renews the lease, unless the schema is now that of another version. Resolves with true if the node has its lock.
   * After a failure the caller closes the connection, because its transaction is open.
   */
  async #register(connection: ReservedSQL): Promise<boolean> {
    await connection.unsafe(BEGIN_REGISTRATION);
    if ((await schemaState(executorOn(connection), this.#known)) !== 'current')
      throw new SchemaRefused('has not the schema of this program');
    const is_locked = await lockOn(connection, this.#lock_key);
    await this.#writeLease(connection);
    await connection.unsafe('COMMIT');
    return is_locked;
  }

  async #writeLease(connection: ReservedSQL): Promise<void> {
    await connection.unsafe(REGISTER, [this.id, this.#lock_key, this.#version]);
  }

  async #disconnect(): Promise<void> {
    this.#has_lock = false;
    this.#connection = undefined;
    await this.#session.drop();
  }

  async #releaseDead(): Promise<number> {
    const connection = this.#connection;
    if (connection === undefined || performance.now() - this.#connected_ms < this.#lease_ms) return 0;
    const lost = await this.#releaseLost();
    const lease_s = this.#lease_ms / MS_PER_S;
    const stale = await cutWhenLate(this.#session, RENEWAL_MS, async () =>
      connection.unsafe<{ id: string }[]>(FIND_STALE, [this.id, lease_s]),
    );
    if (stale.length === 0) return lost;
    return await this.#withSession(async (session) => {
      let all = lost;
      for (const { id } of stale) {
        // A node may be paused for hours. The check reads one row, and the search for holds reads all organizations.
        const is_dead = await cutWhenLate(this.#session, RENEWAL_MS, () =>
          staysDead(connection, id, lease_s),
        );
        if (!is_dead) continue;
        const of_node = await this.#releaseAll(session, HOLDS_OF_NODE, [id], (releasing) =>
          staysDead(releasing, id, lease_s),
        );
        if (of_node.released > 0) this.#events.onReleased(id, of_node.released);
        if (of_node.is_done) {
          await cutWhenLate(session, RELEASE_STEP_MS, async () => {
            await (await session.connect()).unsafe(REMOVE_DEAD, [id, lease_s]);
          });
        }
        all += of_node.released;
      }
      return all;
    });
  }

  /** Releases the open holds in this node's name that it does not know at two looks. Resolves with their number. */
  async #releaseLost(): Promise<number> {
    const [isKnown, unknown] = [this.#isKnown, this.#unknown];
    if (!this.#may_have_lost || isKnown === null) return 0;
    const at_ms = performance.now();
    // A hold that was placed just before the first look is known, or freed, by then.
    if (unknown !== null && at_ms - unknown.at_ms < this.#lease_ms) return 0;
    return await this.#withSession(async (session) => {
      const rows = await cutWhenLate(session, RELEASE_STEP_MS, async () =>
        (await session.connect()).unsafe<OpenHoldRow[]>(ALL_HOLDS_OF_NODE, [this.id]),
      );
      const found = rows.filter((row) => !isKnown(holdOf(row)));
      const lost = found.filter(({ id }) => unknown?.entry_ids.has(Number(id)));
      let released = 0;
      for (let first = 0; first < lost.length; first += RELEASED_AT_ONCE) {
        const holds = lost.slice(first, first + RELEASED_AT_ONCE);
        released += await this.#release(session, holds, () => Promise.resolve(true));
      }
      // After the releases: what fails is tried again at the next look.
      this.#may_have_lost = unknown === null && found.length > 0;
      this.#unknown = { entry_ids: new Set(found.map(({ id }) => Number(id))), at_ms };
      if (released > 0) this.#events.onReleased(this.id, released);
      return released;
    });
  }

  /** Releases these holds in one transaction, if that is allowed. Resolves with their number. */
  async #release(
    session: Session,
    holds: readonly OpenHoldRow[],
    isAllowed: (connection: ReservedSQL, holds: readonly OpenHoldRow[]) => Promise<boolean>,
  ): Promise<number> {
    const releases = holds.map((row) => ({
      write: { kind: 'release', hold: holdOf(row), usage: null } as const,
      is_doubtful: false,
      is_abandoned: false,
    }));
    const result = await cutWhenLate(session, RELEASE_STEP_MS, async () =>
      writeLedger(await session.connect(), releases, this.id, (connection) => isAllowed(connection, holds)),
    );
    if (!result.ok && !(result.error instanceof Forbidden)) throw result.error;
    return result.ok ? result.written.filter(({ kind }) => kind === 'ended').length : 0;
  }

  /** Releases the holds that the statement finds, in batches, while `isAllowed` holds. */
  async #releaseAll(
    session: Session,
    statement: string,
    parameters: readonly string[],
    isAllowed: (connection: ReservedSQL, holds: readonly OpenHoldRow[]) => Promise<boolean>,
  ): Promise<{ readonly released: number; readonly is_done: boolean }> {
    for (let released = 0; ; ) {
      const holds = await cutWhenLate(session, RELEASE_STEP_MS, async () =>
        (await session.connect()).unsafe<OpenHoldRow[]>(statement, [...parameters]),
      );
      if (holds.length === 0) return { released, is_done: true };
      const ended = await this.#release(session, holds, isAllowed);
      if (ended === 0) return { released, is_done: false };
      released += ended;
    }
  }

  async #withSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = new Session(this.#client, RELEASE_SETTINGS);
    try {
      return await work(session);
    } finally {
      await session.drop();
    }
  }
}

interface OpenHoldRow extends HoldRow {
  readonly process_id: string | null;
}

/**
 * Runs the work, and closes the session's connection after the limit, so that the work rejects. A process that was
 * paused gets time to read the answers that have arrived.
 */
async function cutWhenLate<T>(session: Session, limit_ms: number, work: () => Promise<T>): Promise<T> {
  let late = setTimeout(() => {
    late = setTimeout(() => void session.drop(), READ_MS);
  }, limit_ms);
  try {
    return await work();
  } finally {
    clearTimeout(late);
  }
}

async function lockOn(connection: ReservedSQL, key: number): Promise<boolean> {
  const [row] = await connection.unsafe<{ is_mine: boolean }[]>(
    'SELECT pg_try_advisory_lock($1) AS is_mine',
    [key],
  );
  return row?.is_mine === true;
}

/** Resolves with true if the node is dead. It stays dead until an open transaction ends. */
async function staysDead(connection: SQL, id: string, lease_s: number): Promise<boolean> {
  const [row] = await connection.unsafe<{ is_free: boolean }[]>(KEEP_DEAD, [id, lease_s]);
  return row?.is_free === true;
}

async function isOfNobody(connection: ReservedSQL, holds: readonly OpenHoldRow[]): Promise<boolean> {
  const processes = holds.map(({ process_id }) => process_id).filter((id) => id !== null);
  const [row] = await connection.unsafe<{ nodes: number }[]>(REGISTERED, [JSON.stringify(processes)]);
  return row?.nodes === 0;
}

function randomLockKey(): number {
  // The keys are above the fixed ones of `locks.ts`, and exact in a JavaScript number.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return 2 ** 40 + random * 2 ** 16;
}
