import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type ChargedDay, type MovementChunk, movementsOf } from '../../src/ledger/movement-chunk.ts';
import { type Movement, MovementLines } from '../../src/ledger/movement-lines.ts';
import type {
  MovementPage,
  MovementPlace,
  MovementQuestion,
  MovementReader,
} from '../../src/store/movement-reader.ts';
import { firstRow } from '../records/first-row.ts';
import type { Executor, PgDb } from './connection.ts';
import { ofOrganization } from './of-organization.ts';
import { readOneState } from './one-state.ts';
import { ledgerDays, ledgerEntries, organizations, payments } from './schema.ts';

/** The largest number of movements in one read. */
const CHUNK_MOVEMENTS = 1_000;

/** Reads the movements of credit in PostgreSQL. */
export class PostgresMovementReader implements MovementReader {
  constructor(private readonly db: PgDb) {}

  movementLines(question: MovementQuestion): Promise<MovementPage> {
    return readOneState(this.db, (executor, requireTime) =>
      new Movements(executor, question, requireTime).page(),
    );
  }
}

/** The movements of one question, read in one snapshot. */
class Movements {
  constructor(
    private readonly executor: Executor,
    private readonly question: MovementQuestion,
    /** Throws if the read has taken too long. */
    private readonly requireTime: () => void,
  ) {}

  async page(): Promise<MovementPage> {
    const place = this.question.before ?? (await this.#newest());
    const lines = new MovementLines(this.question, place);
    for await (const movement of this.#before(place.entry_id)) {
      if (!lines.add(movement)) return lines.page(false);
    }
    return lines.page(true);
  }

  /** Returns the place after all movements. */
  async #newest(): Promise<MovementPlace> {
    const found = await firstRow(
      this.executor
        .select({ credit_micros: organizations.credit_micros })
        .from(organizations)
        .where(eq(organizations.id, this.question.organization_id)),
    );
    return { entry_id: Number.MAX_SAFE_INTEGER, balance_micros: found?.credit_micros ?? 0 };
  }

  /** Yields every movement before an entry, newest first. */
  async *#before(entry_id: number): AsyncGenerator<Movement, void, undefined> {
    const { organization_id, charges_by, limit: lines } = this.question;
    // By request, each line is one movement. One more movement than asked for shows that there are more.
    const limit = charges_by === 'request' ? Math.min(lines + 1, CHUNK_MOVEMENTS) : CHUNK_MOVEMENTS;
    let before_entry_id = entry_id;
    while (true) {
      this.requireTime();
      const chunk = { organization_id, before_entry_id, limit };
      const found = movementsOf(chunk, await this.#entries(chunk), await this.#days(chunk));
      yield* found;
      const last = found.at(-1);
      if (last === undefined || found.length < limit) return;
      before_entry_id = last.entry_id;
    }
  }

  async #entries({ organization_id, before_entry_id, limit }: MovementChunk): Promise<Movement[]> {
    const hold = alias(ledgerEntries, 'hold');
    // The hold of each charge is one more read, which a line of many charges does not need.
    const request_id: SQL<string | null> =
      this.question.charges_by === 'request'
        ? sql`(SELECT ${hold.request_id} FROM ${ledgerEntries} AS ${sql.identifier('hold')}
          WHERE ${eq(hold.id, ledgerEntries.hold_entry_id)})`
        : sql`NULL`;
    return await this.executor
      .select({
        kind: sql<'top_up' | 'refund' | 'charge'>`${ledgerEntries.kind}`,
        entry_id: ledgerEntries.id,
        at_ms: ledgerEntries.created_at_ms,
        amount_micros: ledgerEntries.credit_delta_micros,
        charges: sql<number>`CASE ${ledgerEntries.kind} WHEN 'charge' THEN 1 ELSE 0 END`.mapWith(Number),
        project_id: ledgerEntries.project_id,
        request_id,
        payment_id: ledgerEntries.payment_id,
        provider: payments.provider,
        refunds_payment_id: payments.refunds_payment_id,
      })
      .from(ledgerEntries)
      .leftJoin(payments, eq(payments.id, ledgerEntries.payment_id))
      .where(
        and(
          ofOrganization(ledgerEntries.organization_id, organization_id),
          // Constants instead of parameters, so that every plan can use the partial index.
          sql`${ledgerEntries.kind} <> 'hold' AND ${ledgerEntries.kind} <> 'release'`,
          lt(ledgerEntries.id, before_entry_id),
        ),
      )
      .orderBy(desc(ledgerEntries.organization_id), desc(ledgerEntries.id))
      .limit(limit);
  }

  async #days({ organization_id, before_entry_id, limit }: MovementChunk): Promise<ChargedDay[]> {
    return await this.executor
      .select({
        day: ledgerDays.day,
        entry_id: ledgerDays.last_entry_id,
        charges: ledgerDays.charges,
        charged_micros: ledgerDays.charged_micros,
        project_id: ledgerDays.project_id,
      })
      .from(ledgerDays)
      .where(
        and(eq(ledgerDays.organization_id, organization_id), lt(ledgerDays.last_entry_id, before_entry_id)),
      )
      .orderBy(desc(ledgerDays.last_entry_id))
      .limit(limit);
  }
}
