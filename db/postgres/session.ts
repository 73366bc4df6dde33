import type { ReservedSQL, SQL } from 'bun';

/** Settings of a session whose statements find every row by an index, whatever PostgreSQL expects of the tables. */
export const BY_INDEX_ONLY = [
  'SET enable_seqscan = off',
  'SET enable_hashjoin = off',
  'SET enable_mergejoin = off',
  'SET jit = off',
];

/** Errors of a session's server that were not asked for; nobody needs to hear of them. */
const ignore = () => undefined;

/**
 * A connection of its own, out of the pool: a transaction's statements can be sent together, without waiting for each
 * answer. One that broke is replaced, and is never used again: what was begun on it cannot go on elsewhere.
 */
export class Session {
  readonly #client: SQL;
  /** Statements that every new connection begins with. */
  readonly #settings: readonly string[];
  #connection: ReservedSQL | undefined;
  /** Is aborted by the next drop. */
  #dropped = new AbortController();

  constructor(client: SQL, settings: readonly string[] = []) {
    this.#client = client;
    this.#settings = settings;
  }

  /**
   * The connection; a new one where there is none. Rejects with what the client throws when it cannot connect, and with
   * `SessionDropped`. It may wait as long as the client does for a free connection, and as the server does.
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
   * Cuts the connection: statements under way reject, and their transaction is undone unless it commits just now. One
   * that is only being made is cut when it is there.
   */
  async drop(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#dropped.abort();
    this.#dropped = new AbortController();
    await connection?.close({ timeout: 0 }).catch(ignore);
  }

  async #open(signal: AbortSignal): Promise<ReservedSQL> {
    const connection = await this.#client.reserve();
    const cut = async () => await connection.close({ timeout: 0 }).catch(ignore);
    signal.addEventListener('abort', cut);
    try {
      for (const setting of this.#settings) {
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

/** The session was dropped while its connection was made. */
export class SessionDropped extends Error {
  override readonly name = 'SessionDropped';
}
