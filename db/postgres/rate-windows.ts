import { sql } from 'drizzle-orm';
import {
  type RateLimits,
  type RateRefusal,
  type RateStatus,
  rateStatus,
  WINDOW_MS,
  type WindowSums,
} from '../../src/limits/rate-status.ts';
import type { Admission, RateWindows, TokenReservation } from '../../src/limits/rate-windows.ts';
import type { Clock } from '../../src/time/clock.ts';
import { inTime } from '../../src/time/in-time.ts';
import type { PgConnection } from './connection.ts';
import { rateWindowEntries, rateWindows } from './schema.ts';

/**
 * The longest wait for an answer, longer than any healthy statement. Then its requests are refused, and the connection
 * is closed.
 */
const ANSWER_MS = 3_000;
/** The delay of settlements while the database cannot be reached, unless a request takes them along before. */
const RETRY_MS = 1_000;
/**
 * After this many late answers in a row, requests are refused at once for `RETRY_MS`. The first one may be due to a
 * broken connection, so a second try is made.
 */
const LATE_MAX = 2;
/** The largest number of requests in one statement, which then takes some ten milliseconds at most. */
const GROUP_MAX = 512;
/** The largest number of windows that one statement drops. A returning organization waits for it. */
const FORGET_MAX = 5_000;
const FORGET_MS = 30_000;
const US_PER_MS = 1_000;

/** The outcomes of a request, as the database's function returns them. */
const OUTCOME = { admitted: 0, lacks_requests: 1, lacks_tokens: 2 } as const;

/** Options of the rate windows on PostgreSQL. */
export interface PostgresRateWindowsOptions {
  /** Opens a connection for the windows alone, so that they wait for no other work and can replace it. */
  readonly connect: () => Promise<PgConnection>;
  /** The clock that bounds how long a known refusal holds. Nothing is counted by it. */
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** Receives the errors of settlements, which no request gets. */
  readonly onProblem: (error: unknown) => void;
  /** The longest wait for an answer, in milliseconds; by default `ANSWER_MS`. */
  readonly answer_ms?: number;
  /** The time in microseconds, for tests; by default the database's clock. */
  readonly time_us?: () => number;
}

/** The database's answer to one request. */
interface WindowReply {
  readonly outcome: number;
  readonly sums: WindowSums;
  readonly admitted_at_us: number;
  /** A time before the decision, by this process's clock. */
  readonly asked_at_ms: number;
}

/** A request that waits for its answer. */
interface WindowRequest {
  readonly organization_id: string;
  /** Null to read the organization's state only. */
  readonly admission: { readonly limits: RateLimits; readonly tokens: number } | null;
  readonly resolve: (answer: WindowReply) => void;
  readonly reject: (error: unknown) => void;
}

/** The change of an entry's tokens. */
interface Settlement {
  readonly organization_id: string;
  readonly admitted_at_us: number;
  readonly tokens: number;
  readonly since_ms: number;
  readonly resolve: () => void;
}

/** A caller that asks only for an answer. */
type Probe = Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'>;

interface Group {
  readonly probes: readonly Probe[];
  readonly requests: readonly WindowRequest[];
  readonly settlements: readonly Settlement[];
}

/** The state of a database that does not answer. Requests get its error until `until_ms`, by `performance.now()`. */
interface Away {
  readonly error: unknown;
  readonly until_ms: number;
}

/** A limit of requests that is used up until the oldest request leaves the window. */
interface Exhausted {
  readonly requests_per_minute: number;
  readonly until_ms: number;
  readonly tokens: number;
  readonly tokens_until_ms: number;
}

/** The arrays that `admit_requests` returns, by request. */
interface AdmittedRow {
  readonly outcomes: ArrayLike<number>;
  readonly used_requests: ArrayLike<number>;
  readonly used_tokens: ArrayLike<number>;
  readonly requests_leave_us: ArrayLike<number>;
  readonly tokens_leave_us: ArrayLike<number>;
  readonly admitted_at_us: ArrayLike<number>;
}

/**
 * The rate windows of all nodes of a database, exact by the database's clock. Requests that arrive during a statement
 * share the next one, on one connection.
 *
 * If the database cannot be reached, admissions reject within two times `answer_ms`, and the next one opens a new
 * connection. While the database is away they reject at once, and one tries again each second. An admission whose
 * answer was lost may stay counted for 60 seconds. No admission is missed.
 */
export class PostgresRateWindows implements RateWindows {
  #probes: Probe[] = [];
  #requests: WindowRequest[] = [];
  #settlements: Settlement[] = [];
  /** Reads of an organization's state that are not sent yet. All callers share one. */
  readonly #standings = new Map<string, Promise<WindowReply>>();
  readonly #exhausted = new Map<string, Exhausted>();
  #connection: Promise<PgConnection> | null = null;
  #work: Promise<void> | null = null;
  /** The number of late answers and failures in a row. */
  #late = 0;
  #away: Away | null = null;
  #retry: Timer | null = null;

  constructor(private readonly options: PostgresRateWindowsOptions) {}

  exhausted(organization_id: string, limits: RateLimits): Promise<RateRefusal | null> {
    return Promise.resolve(this.#knownExhausted(organization_id, limits));
  }

  async admit(organization_id: string, limits: RateLimits, estimated_tokens: number): Promise<Admission> {
    const known = this.#knownExhausted(organization_id, limits);
    if (known !== null) return known;
    this.#throwWhileAway();
    const answer = await this.#ask(organization_id, { limits, tokens: estimated_tokens });
    const { outcome, sums, admitted_at_us, asked_at_ms } = answer;
    const status = rateStatus(limits, sums);
    // The database's function counts a request that lacks tokens; one that needs none does not lack them.
    const is_free = outcome === OUTCOME.lacks_tokens && estimated_tokens === 0;
    if (outcome === OUTCOME.admitted || is_free) {
      const settle = (billed_tokens: number) =>
        this.#settle(organization_id, admitted_at_us, billed_tokens - estimated_tokens);
      return { admitted: true, reservation: { settle } satisfies TokenReservation, status };
    }
    if (outcome === OUTCOME.lacks_tokens)
      return { admitted: false, limit: 'tokens', retry_after_s: status.reset_tokens_s, status };
    this.#exhausted.set(organization_id, {
      requests_per_minute: limits.requests_per_minute,
      until_ms: asked_at_ms + sums.requests_leave_ms,
      tokens: sums.tokens,
      tokens_until_ms: asked_at_ms + sums.tokens_leave_ms,
    });
    return { admitted: false, limit: 'requests', retry_after_s: status.reset_requests_s, status };
  }

  async status(organization_id: string, limits: RateLimits): Promise<RateStatus> {
    this.#throwWhileAway();
    const asked = this.#standings.get(organization_id) ?? this.#ask(organization_id, null);
    this.#standings.set(organization_id, asked);
    return rateStatus(limits, (await asked).sums);
  }

  /** Resolves if the windows answer now, with the requests that wait. Rejects as `admit` does. */
  async requireAnswer(): Promise<void> {
    this.#throwWhileAway();
    const { promise, ...probe } = Promise.withResolvers<void>();
    this.#probes.push(probe);
    this.#start();
    await promise;
  }

  /**
   * Drops empty windows of all nodes, and skips rows in use. Rejects with the client's errors, and if the database does
   * not answer.
   */
  async forgetIdle(): Promise<void> {
    const now_ms = this.options.clock.monotonic_ms();
    for (const [organization_id, { until_ms }] of this.#exhausted) {
      if (until_ms <= now_ms) this.#exhausted.delete(organization_id);
    }
    // It has its own connection, so that admissions do not wait for it.
    const connecting = this.options.connect();
    const { answer_ms = ANSWER_MS } = this.options;
    try {
      const connection = await inTime(connecting, answer_ms, 'connecting took too long');
      let dropped: number;
      do {
        dropped = await inTime(this.#dropIdle(connection), FORGET_MS, 'idle rate windows took too long');
      } while (dropped === FORGET_MAX);
    } finally {
      // A late connection is closed, too. The errors of one in time were already thrown.
      connecting.then((connection) => connection.close()).catch(() => undefined);
    }
  }

  /** Waits for all requests and settlements, and closes the connection. */
  async close(): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry);
    if (this.#settlements.length > 0) this.#start();
    while (this.#work !== null) await this.#work;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#disconnect();
  }

  /** Returns the known refusal; null for none. The limit stays used up until the oldest request leaves the window. */
  #knownExhausted(organization_id: string, limits: RateLimits): RateRefusal | null {
    const known = this.#exhausted.get(organization_id);
    if (known === undefined || known.requests_per_minute < limits.requests_per_minute) return null;
    const now_ms = this.options.clock.monotonic_ms();
    const requests_leave_ms = known.until_ms - now_ms;
    if (requests_leave_ms <= 0) return null;
    const tokens_leave_ms = known.tokens_until_ms - now_ms;
    const sums = {
      requests: known.requests_per_minute,
      tokens: known.tokens,
      requests_leave_ms,
      tokens_leave_ms,
    };
    const status = rateStatus(limits, sums);
    return { admitted: false, limit: 'requests', retry_after_s: status.reset_requests_s, status };
  }

  #throwWhileAway(): void {
    const away = this.#away;
    if (away === null) return;
    const now_ms = performance.now();
    if (now_ms < away.until_ms) throw away.error;
    // This request tries again, and no other waits behind it.
    this.#away = { ...away, until_ms: now_ms + (this.options.answer_ms ?? ANSWER_MS) };
  }

  #ask(organization_id: string, admission: WindowRequest['admission']): Promise<WindowReply> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ organization_id, admission, resolve, reject });
      this.#start();
    });
  }

  #settle(organization_id: string, admitted_at_us: number, tokens: number): Promise<void> {
    if (tokens === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const since_ms = performance.now();
      this.#settlements.push({ organization_id, admitted_at_us, tokens, since_ms, resolve });
      this.#start();
    });
  }

  #start(): void {
    this.#work ??= this.#answerAll();
  }

  /** Sends one group after the other. Never rejects. */
  async #answerAll(): Promise<void> {
    while (this.#waiting() > 0 || this.#settlements.length > 0) {
      // All requests of the same turn of the event loop share the group.
      await new Promise((resume) => setImmediate(resume));
      const group = {
        probes: this.#probes.splice(0),
        requests: this.#requests.splice(0, GROUP_MAX).sort(byOrganization),
        settlements: this.#settlements.splice(0).sort(byOrganization),
      };
      this.#standings.clear();
      const is_answered = await this.#answer(group);
      if (!is_answered && this.#waiting() === 0) {
        this.#settleLater();
        break;
      }
    }
    this.#work = null;
  }

  #waiting(): number {
    return this.#probes.length + this.#requests.length;
  }

  /** Retries settlements later, unless a request takes them along. */
  #settleLater(): void {
    if (this.#settlements.length === 0 || this.#retry !== null) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      if (this.#settlements.length > 0) this.#start();
    }, RETRY_MS);
    this.#retry.unref();
  }

  /** Resolves with true if the group was answered. Otherwise its requests are rejected. Never rejects. */
  async #answer(group: Group): Promise<boolean> {
    const { answer_ms = ANSWER_MS, clock } = this.options;
    const started_ms = performance.now();
    const asked_at_ms = clock.monotonic_ms();
    let is_sent = false;
    let is_given_up = false;
    const answering = async () => {
      const connection = await this.#connect();
      if (is_given_up) throw new Error('the connection came too late');
      is_sent = true;
      return await admitRequests(connection, group, this.options.time_us?.());
    };
    try {
      const row = await inTime(answering(), answer_ms, 'the rate windows took too long');
      this.#late = 0;
      this.#away = null;
      const answers = group.requests.map((_, index) => answerOf(row, index, asked_at_ms));
      for (const [index, answer] of answers.entries()) group.requests[index]?.resolve(answer);
      for (const { resolve } of [...group.settlements, ...group.probes]) resolve();
      return true;
    } catch (error) {
      is_given_up = true;
      // The next group uses a new connection. This one may hang, or lead to a read-only server.
      this.#disconnect();
      for (const { reject } of [...group.requests, ...group.probes]) reject(error);
      // Requests behind a statement that hung have waited as long.
      if (performance.now() - started_ms >= answer_ms) {
        this.#late += 1;
        if (this.#late >= LATE_MAX) this.#away = { error, until_ms: performance.now() + RETRY_MS };
        this.#standings.clear();
        for (const { reject } of [...this.#requests.splice(0), ...this.#probes.splice(0)]) reject(error);
      } else {
        this.#late = 0;
        this.#away = null;
      }
      this.#keepSettlements(group.settlements, is_sent, error);
      return false;
    }
  }

  /**
   * Keeps settlements that were never sent for the next group. Sent ones may have been counted, and a second count
   * would admit too much. Their entries keep the estimate.
   */
  #keepSettlements(settlements: readonly Settlement[], is_sent: boolean, error: unknown): void {
    if (settlements.length === 0) return;
    this.options.onProblem(error);
    const oldest_ms = performance.now() - WINDOW_MS;
    const kept: Settlement[] = [];
    for (const settlement of settlements) {
      if (!is_sent && settlement.since_ms > oldest_ms) kept.push(settlement);
      else settlement.resolve();
    }
    this.#settlements = [...kept, ...this.#settlements];
  }

  #connect(): Promise<PgConnection> {
    if (this.#connection !== null) return this.#connection;
    const connecting = this.options.connect();
    this.#connection = connecting;
    return connecting;
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = null;
    // A connection that is still being opened is closed, too. Its callers get the error.
    connection?.then((opened) => opened.close()).catch(() => undefined);
  }

  /** Drops empty windows, and skips rows in use. Resolves with their number. */
  async #dropIdle({ db }: PgConnection): Promise<number> {
    const time_us = sql`coalesce(${this.options.time_us?.() ?? null}::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)`;
    const idle = sql`(SELECT organization_id FROM idle)`;
    const [dropped] = await db.execute(sql`
      WITH idle AS MATERIALIZED (
        SELECT organization_id FROM ${rateWindows}
          WHERE latest_us + ${WINDOW_MS * US_PER_MS}::bigint <= ${time_us} + ahead_us
          LIMIT ${FORGET_MAX} FOR UPDATE SKIP LOCKED
      ), entries AS (
        DELETE FROM ${rateWindowEntries} WHERE organization_id IN ${idle}
      ), dropped AS (
        DELETE FROM ${rateWindows} WHERE organization_id IN ${idle} RETURNING organization_id
      )
      SELECT count(*)::int AS windows FROM dropped`);
    return Number(dropped?.windows);
  }
}

/** Settles and admits a group in one statement, which is its own transaction. */
async function admitRequests(
  { db }: PgConnection,
  { requests, settlements }: Group,
  time_us: number | undefined,
): Promise<AdmittedRow> {
  const organizations = [...new Set([...requests, ...settlements].map(organizationOf))].sort();
  const place_of = new Map(organizations.map((organization_id, index) => [organization_id, index + 1]));
  const places = (rows: Group['requests' | 'settlements']) =>
    rows.map((row) => place_of.get(organizationOf(row)));
  const [row] = await db.execute(sql`
    SELECT outcomes, used_requests, used_tokens, requests_leave_us, tokens_leave_us, admitted_at_us
    FROM admit_requests(
      ${sql.param(organizations)}::text[],
      ${arrayOf(places(settlements))}::int[],
      ${arrayOf(settlements.map(({ admitted_at_us }) => admitted_at_us))}::bigint[],
      ${arrayOf(settlements.map(({ tokens }) => tokens))}::bigint[],
      ${arrayOf(places(requests))}::int[],
      ${arrayOf(requests.map(({ admission }) => admission?.limits.requests_per_minute))}::bigint[],
      ${arrayOf(requests.map(({ admission }) => admission?.limits.tokens_per_minute))}::bigint[],
      ${arrayOf(requests.map(({ admission }) => admission?.tokens))}::bigint[],
      ${time_us ?? null}::bigint
    )`);
  if (row === undefined) throw new Error('admit_requests gave no row');
  const { outcomes, used_requests, used_tokens, requests_leave_us, tokens_leave_us, admitted_at_us } = row;
  return { outcomes, used_requests, used_tokens, requests_leave_us, tokens_leave_us, admitted_at_us };
}

/** Returns an array of integers in PostgreSQL's syntax; undefined becomes NULL. */
function arrayOf(numbers: readonly (number | undefined)[]): string {
  return `{${numbers.map((number) => number ?? 'NULL').join()}}`;
}

function organizationOf({ organization_id }: { readonly organization_id: string }): string {
  return organization_id;
}

function byOrganization(left: WindowRequest | Settlement, right: WindowRequest | Settlement): number {
  if (left.organization_id === right.organization_id) return 0;
  return left.organization_id < right.organization_id ? -1 : 1;
}

function answerOf(row: AdmittedRow, index: number, asked_at_ms: number): WindowReply {
  const { outcomes, used_requests, used_tokens, requests_leave_us, tokens_leave_us, admitted_at_us } = row;
  const at = (numbers: ArrayLike<number>): number => {
    const number = numbers[index];
    if (number === undefined) throw new Error('admit_requests gave too few answers');
    return number;
  };
  return {
    outcome: at(outcomes),
    sums: {
      requests: at(used_requests),
      tokens: at(used_tokens),
      requests_leave_ms: at(requests_leave_us) / US_PER_MS,
      tokens_leave_ms: at(tokens_leave_us) / US_PER_MS,
    },
    admitted_at_us: at(admitted_at_us),
    asked_at_ms,
  };
}
