import type { ReservedSQL, SQL } from 'bun';
import { MS_PER_S } from '../../src/clock.ts';
import { SchemaRefused } from '../schema-state.ts';
import { executorOn, type PgDb } from './connection.ts';
import { openHoldOf } from './ledger-statements.ts';
import { Forbidden, writeLedger } from './ledger-transaction.ts';
import { LEASE_AGE_S, LEASE_S } from './living-nodes.ts';
import { knownMigrations, schemaState } from './migrate.ts';
import { BY_INDEX_ONLY, Session } from './session.ts';

const RENEW_EVERY_MS = 5_000;
/** Between two looks for nodes that died. */
const LOOK_EVERY_MS = 5_000;
/** Holds that are released in one transaction: their organizations are locked only so long. */
const RELEASED_AT_ONCE = 500;
/** A renewal, or a question who is dead, that takes longer failed: it is tried again on a new connection. */
const RENEWAL_MS = 4_000;
/** To read what was answered while this process was paused. */
const READ_MS = 250;
/** To find holds, or to release some, when the server does not end it itself. */
const RELEASE_STEP_MS = 30_000;

const RELEASE_SETTINGS = [
  "SET lock_timeout = '3s'",
  "SET idle_in_transaction_session_timeout = '4s'",
  // To find a hold, the ledger is read back to it, and much may have been written since.
  "SET statement_timeout = '20s'",
  // The ledger is read from its end, by its index, until all open holds are found. PostgreSQL knows nothing of a node
  // that died. It expects no hold of it, and would rather read the whole ledger at once, in parallel.
  'SET max_parallel_workers_per_gather = 0',
  ...BY_INDEX_ONLY,
];

/** Waits for a newer version that updates the database just now, whatever it makes of this table. */
const BEGIN_REGISTRATION = 'BEGIN; LOCK TABLE nodes IN ROW EXCLUSIVE MODE';

const REGISTER = `
  INSERT INTO nodes (id, lock_key, started_at, renewed_at, version)
  VALUES ($1, $2, clock_timestamp(), clock_timestamp(), $3)
  ON CONFLICT (id) DO UPDATE SET renewed_at = clock_timestamp()`;

/** The second parameter is the lease. */
const HAS_RUN_OUT = `${LEASE_AGE_S} > $2`;

const FIND_STALE = `SELECT id FROM nodes WHERE id <> $1 AND ${HAS_RUN_OUT}`;

/** One row with true when the node is dead; it cannot come back to life before the transaction has ended. */
const KEEP_DEAD = `
  SELECT pg_try_advisory_xact_lock(lock_key) AS is_free FROM nodes
  WHERE id = $1 AND ${HAS_RUN_OUT} FOR UPDATE SKIP LOCKED`;

const REMOVE_DEAD = `
  WITH dead AS (${KEEP_DEAD}) DELETE FROM nodes USING dead WHERE nodes.id = $1 AND dead.is_free`;

/** How many of these processes are registered. */
const REGISTERED = `
  SELECT count(*)::integer AS nodes FROM nodes
  WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)))`;

/** Newest first and no more than there are, so that old history is not read. */
const OPEN_HOLDS = `
  SELECT open.id, open.organization_id, open.project_id, open.month, open.held_delta_micros, open.process_id FROM (
    SELECT held.id, held.organization_id, held.project_id, held.month, held.held_delta_micros, held.process_id
    FROM ledger_entries AS held
    WHERE held.kind = 'hold'
      AND NOT EXISTS (SELECT FROM ledger_entries AS ended WHERE ended.hold_entry_id = held.id)
    ORDER BY held.id DESC
    LIMIT (SELECT coalesce(sum(open_holds), 0)::bigint FROM organizations)
  ) AS open`;

/** The first parameter is the node. */
const HOLDS_OF_NODE = `${OPEN_HOLDS} WHERE open.process_id = $1 LIMIT ${RELEASED_AT_ONCE}`;

/** Those of processes that never registered, as of a database that was copied from a single machine. */
const HOLDS_OF_NOBODY = `${OPEN_HOLDS}
  WHERE open.process_id IS NULL OR NOT EXISTS (SELECT FROM nodes WHERE nodes.id = open.process_id)
  LIMIT ${RELEASED_AT_ONCE}`;

/** How often a node says that it lives, and when others may take it for dead. */
export interface LeaseTimes {
  readonly lease_ms?: number;
  readonly renew_every_ms?: number;
  readonly look_every_ms?: number;
}

/** What an operator should know of this node and of those that died. */
export interface NodeEvents {
  /** The lease could not be renewed, or dead nodes could not be looked for; it is tried again. */
  readonly onProblem: (error: unknown) => void;
  /** Holds of a node that died were released. */
  readonly onReleased: (node_id: string, holds: number) => void;
}

/** A node as it registers. */
export interface NewNode {
  /** What its holds name. */
  readonly id: string;
  readonly version: string;
}

/**
 * This process among the nodes of a database. It holds an advisory lock on a connection of its own for as long as it
 * lives, and renews a lease. A node is dead when its lock is free and its lease has run out. A paused process keeps its
 * lock. After a failover all locks are gone, and the lease protects it. The times compared are the database's.
 *
 * Any node releases the holds of a dead one, but not before the connection that has its lock is as old as a lease. After
 * an outage all leases have run out, and the others need the time to renew theirs. It asks who is dead on that very
 * connection: the end of a server ends it, and an answer says that there was none.
 *
 * A newer version updates the database only where no node lives. So the schema is that of this program for as long as
 * the node has its lock, or a young lease. Whenever it had neither, as after a long outage, it compares the schema again.
 */
export class NodeLease {
  readonly id: string;
  readonly #client: SQL;
  readonly #session: Session;
  readonly #version: string;
  /** As they are at the start: the files may be those of a newer version later. */
  readonly #known = knownMigrations();
  readonly #lock_key = randomLockKey();
  readonly #lease_ms: number;
  readonly #events: NodeEvents;
  #timers: ReturnType<typeof setInterval>[] = [];
  #connection: ReservedSQL | undefined;
  #has_lock = false;
  /** Of the connection, on the clock of `performance`. */
  #connected_ms = 0;
  #renewed_ms = Number.NEGATIVE_INFINITY;
  #renewal: Promise<void> | undefined;
  #look: Promise<number> | undefined;

  private constructor(client: SQL, { id, version }: NewNode, events: NodeEvents, times: LeaseTimes) {
    this.id = id;
    this.#client = client;
    this.#session = new Session(client);
    this.#version = version;
    this.#events = events;
    this.#lease_ms = times.lease_ms ?? LEASE_S * MS_PER_S;
  }

  /**
   * Registers a node, with a connection of the pool that it keeps, and begins to renew its lease and to look for nodes
   * that died. Rejects as `renew` does.
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

  /** Whether the lease is so young that nobody takes this node for dead, even some seconds from now. */
  isRenewed(): boolean {
    return performance.now() - this.#renewed_ms < (3 / 4) * this.#lease_ms;
  }

  /** Whether this node has its lock; without it, only the lease says that it lives. */
  get hasLock(): boolean {
    return this.#has_lock;
  }

  /**
   * Resolves when nobody takes this node for dead, even some seconds from now. So its holds stay its own, and the schema
   * stays what it was. Rejects as `renew` does.
   */
  async requireRenewed(): Promise<void> {
    if (!this.isRenewed()) await this.renew();
  }

  /**
   * Renews the lease, and takes the lock again where it was lost. Rejects with what PostgreSQL or the client throws.
   * Rejects with `SchemaRefused` where a newer version updated the database while this node had no lock: it is no node
   * any more then.
   */
  renew(): Promise<void> {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /**
   * Releases the open holds of dead nodes, and takes the nodes away. Resolves with how many holds. Rejects with what
   * PostgreSQL or the client throws.
   */
  releaseDead(): Promise<number> {
    this.#look ??= this.#releaseDead().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  /**
   * Releases the open holds of processes that never registered, and of those that named none. Resolves with how many.
   */
  releaseOrphans(): Promise<number> {
    return this.#withSession(async (session) => {
      const { released } = await this.#releaseAll(session, HOLDS_OF_NOBODY, [], isOfNobody);
      return released;
    });
  }

  /**
   * Ends the node: its lock is free. Its row goes unless it has left holds, which the others then release as those of a
   * dead node.
   */
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
        // The connection may have broken long ago, and nobody noticed.
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
        this.#connected_ms = performance.now();
        this.#has_lock = false;
      }
      if (this.#has_lock) await this.#writeLease(connection);
      else this.#has_lock = await this.#register(connection);
      this.#renewed_ms = began_ms;
    });
  }

  /**
   * Says that the node lives, unless the schema is that of another version now. Resolves with whether it has its lock.
   * Whatever fails must cost the connection, whose transaction is open then.
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
    const lease_s = this.#lease_ms / MS_PER_S;
    const stale = await cutWhenLate(this.#session, RENEWAL_MS, async () =>
      connection.unsafe<{ id: string }[]>(FIND_STALE, [this.id, lease_s]),
    );
    if (stale.length === 0) return 0;
    return await this.#withSession(async (session) => {
      let all = 0;
      for (const { id } of stale) {
        // A node may be paused for hours: finding holds reads all organizations, and its lock is one row.
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

  /** Releases what the statement finds, some at a time, for as long as it is allowed. */
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
      const releases = holds.map((row) => ({
        write: { kind: 'release', hold: openHoldOf(row), usage: null } as const,
        is_doubtful: false,
        is_abandoned: false,
      }));
      const result = await cutWhenLate(session, RELEASE_STEP_MS, async () =>
        writeLedger(await session.connect(), releases, this.id, (connection) => isAllowed(connection, holds)),
      );
      if (!result.ok && !(result.error instanceof Forbidden)) throw result.error;
      const ended = result.ok ? result.written.filter(({ kind }) => kind === 'ended').length : 0;
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

interface OpenHoldRow {
  readonly id: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly month: string;
  readonly held_delta_micros: string;
  readonly process_id: string | null;
}

/**
 * What the work resolves to. When it takes longer, the session is cut, so that whatever waits on it rejects. A process
 * that was paused is given the time to read what was answered meanwhile.
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

/** Whether the node is dead, and stays so until the transaction has ended, where there is one. */
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
  // Above the keys that have a meaning, and exact in a JavaScript number.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return 2 ** 40 + random * 2 ** 16;
}
