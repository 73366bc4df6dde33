import { type ChargedDay, type MovementChunk, movementsOf } from '../../src/ledger/movement-chunk.ts';
import { type Movement, MovementLines } from '../../src/ledger/movement-lines.ts';
import type {
  MovementPage,
  MovementPlace,
  MovementQuestion,
  MovementReader,
} from '../../src/store/movement-reader.ts';
import type { Db } from './connection.ts';

/** The number of entries in one read. */
const CHUNK_ENTRIES = 1_000;

/** Reads the movements of credit on its own connection, because a read may take long. */
export class SqliteMovementReader implements MovementReader {
  readonly #client: Db['$client'];

  constructor(db: Db) {
    this.#client = db.$client;
  }

  movementLines(question: MovementQuestion): Promise<MovementPage> {
    // One transaction keeps the balance consistent with the newest movement.
    return Promise.try(this.#client.transaction(() => this.#lines(question)));
  }

  #lines(question: MovementQuestion): MovementPage {
    const { organization_id, charges_by, before } = question;
    const place = before ?? this.#newest(organization_id);
    const lines = new MovementLines(question, place);
    for (const movement of this.#movements(organization_id, place.entry_id, charges_by === 'request')) {
      if (!lines.add(movement)) return lines.page(false);
    }
    return lines.page(true);
  }

  /** Returns the place after all movements. */
  #newest(organization_id: string): MovementPlace {
    const found = this.#client
      .query<{ credit_micros: number }, { organization_id: string }>(
        'SELECT credit_micros FROM organizations WHERE id = $organization_id',
      )
      .get({ organization_id });
    return { entry_id: Number.MAX_SAFE_INTEGER, balance_micros: found?.credit_micros ?? 0 };
  }

  /** Yields every movement before an entry, newest first. `with_requests` adds the requests of charges. */
  *#movements(
    organization_id: string,
    entry_id: number,
    with_requests: boolean,
  ): Generator<Movement, void, undefined> {
    let before_entry_id = entry_id;
    while (true) {
      const chunk = { organization_id, before_entry_id, limit: CHUNK_ENTRIES };
      const found = movementsOf(chunk, this.#entries(chunk, with_requests), this.#days(chunk));
      yield* found;
      const last = found.at(-1);
      if (last === undefined || found.length < CHUNK_ENTRIES) return;
      before_entry_id = last.entry_id;
    }
  }

  #entries(chunk: MovementChunk, with_requests: boolean): Movement[] {
    // The hold of each charge is one more read, which a line of many charges does not need.
    const [request, holds] = with_requests
      ? ['hold.request_id', 'LEFT JOIN ledger_entries AS hold ON hold.id = entry.hold_entry_id']
      : ['NULL', ''];
    return this.#client
      .query<Movement, MovementChunk & Record<string, string | number>>(
        // `<> 'hold'` is written as in the partial index, so that SQLite uses it.
        `SELECT entry.kind, entry.id AS entry_id, entry.created_at_ms AS at_ms,
          entry.credit_delta_micros AS amount_micros, entry.kind = 'charge' AS charges, entry.project_id,
          ${request} AS request_id, entry.payment_id, payments.provider,
          payments.refunds_payment_id
        FROM ledger_entries AS entry
        ${holds}
        LEFT JOIN payments ON payments.id = entry.payment_id
        WHERE entry.organization_id = $organization_id AND entry.kind <> 'hold' AND entry.kind <> 'release'
          AND entry.id < $before_entry_id
        ORDER BY entry.id DESC LIMIT $limit`,
      )
      .all({ ...chunk });
  }

  #days(chunk: MovementChunk): ChargedDay[] {
    return this.#client
      .query<ChargedDay, MovementChunk & Record<string, string | number>>(
        `SELECT day, last_entry_id AS entry_id, charges, charged_micros, project_id FROM ledger_days
        WHERE organization_id = $organization_id AND last_entry_id < $before_entry_id
        ORDER BY last_entry_id DESC LIMIT $limit`,
      )
      .all({ ...chunk });
  }
}
