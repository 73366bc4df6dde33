import type { ReservedSQL, SQL } from 'bun';

/** Settings of a session whose statements find every row by an index, whatever PostgreSQL expects of the tables. */
export const BY_INDEX_ONLY = [
  'SET enable_seqscan = off',
  'SET enable_hashjoin = off',
  'SET enable_mergejoin = off',
  'SET jit = off',
];

/** Ignores errors that belong to no statement of the session. */
const ignore = () => undefined;

/**
 * A reserved connection of the pool, on which a transaction's statements can be sent together without waiting for each
 * answer. A broken connection is replaced and never used again, because its transaction cannot continue elsewhere.
 */
export class Session {
  #connection: ReservedSQL | undefined;
  /** The signal that the next drop aborts. */
  #dropped = new AbortController();

  constructor(
    private readonly client: SQL,
    /** The first statements of every new connection. */
    private readonly settings: readonly string[] = [],
  ) {}

  /**
   * Resolves with the connection, and opens one if there is none. Rejects with the client's error if it cannot connect,
   * and with `SessionDropped`. The wait is bounded only by the client and the server.
   */
  async connect(): Promise<ReservedSQL> {
    if (this.#connection !== undefined) return this.#connection;
    const { signal } = this.#dropped;
    const dropped = Promise.withResolvers<never>();
    const reject = () => dropped.reject(new SessionDropped('the session was dropped'));
    signal.addEventListener('abort', reject);
    try {
      return await Promise.race([this.#open(signal), dropped.promise]);
    } finally {
      signal.removeEventListener('abort', reject);
    }
  }

  /**
   * Closes the connection: statements under way reject, and their transaction is rolled back unless it commits now. A
   * connection that is being opened is closed when it is ready.
   */
  async drop(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#dropped.abort();
    this.#dropped = new AbortController();
    await connection?.close({ timeout: 0 }).catch(ignore);
  }

  async #open(signal: AbortSignal): Promise<ReservedSQL> {
    const connection = await this.client.reserve();
    const cut = async () => await connection.close({ timeout: 0 }).catch(ignore);
    signal.addEventListener('abort', cut);
    try {
      for (const setting of this.settings) {
        signal.throwIfAborted();
        await connection.unsafe(setting);
      }
      signal.throwIfAborted();
    } catch (error) {
      await cut();
      throw error;
    } finally {
      signal.removeEventListener('abort', cut);
    }
    this.#connection = connection;
    return connection;
  }
}

/** The session was dropped while its connection was being opened. */
export class SessionDropped extends Error {
  override readonly name = 'SessionDropped';
}
