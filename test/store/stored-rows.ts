import { sql } from 'drizzle-orm';
import type { Executor } from '../../db/postgres/connection.ts';
import * as postgres from '../../db/postgres/schema.ts';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import * as sqlite from '../../db/sqlite/schema.ts';

/** Rows of the tables of money and usage, as either database stores them. */
export interface StoredRows {
  readonly organizations?: readonly (typeof sqlite.organizations.$inferInsert)[];
  readonly projects?: readonly (typeof sqlite.projects.$inferInsert)[];
  readonly apiKeys?: readonly (typeof sqlite.apiKeys.$inferInsert)[];
  readonly payments?: readonly (typeof sqlite.payments.$inferInsert)[];
  readonly ledgerEntries?: readonly (typeof sqlite.ledgerEntries.$inferInsert)[];
  readonly usageRecords?: readonly (typeof sqlite.usageRecords.$inferInsert)[];
  readonly ledgerDays?: readonly (typeof sqlite.ledgerDays.$inferInsert)[];
  readonly usageDays?: readonly (typeof sqlite.usageDays.$inferInsert)[];
  readonly auditCheckpoints?: readonly (typeof sqlite.auditCheckpoints.$inferSelect)[];
}

/** The checkpoint of an audit that has checked the ledger up to an entry, and no usage. */
export const checkpointAt = (last_entry_id: number) => ({
  id: 1,
  last_entry_id,
  last_usage_row_id: 0,
  last_usage_request_id: null,
  checked_at_ms: 0,
  checked_whole_at_ms: 0,
});

/** Inserts the rows; those of tables that others refer to first. */
export function insertIntoSqlite(db: Db, rows: StoredRows): void {
  const { organizations, projects, apiKeys, payments, ledgerEntries } = rows;
  const { usageRecords, ledgerDays, usageDays, auditCheckpoints } = rows;
  transact(db, () => {
    for (const row of organizations ?? []) db.insert(sqlite.organizations).values(row).run();
    for (const row of projects ?? []) db.insert(sqlite.projects).values(row).run();
    for (const row of apiKeys ?? []) db.insert(sqlite.apiKeys).values(row).run();
    for (const row of payments ?? []) db.insert(sqlite.payments).values(row).run();
    for (const row of ledgerEntries ?? []) db.insert(sqlite.ledgerEntries).values(row).run();
    for (const row of usageRecords ?? []) db.insert(sqlite.usageRecords).values(row).run();
    for (const row of ledgerDays ?? []) db.insert(sqlite.ledgerDays).values(row).run();
    for (const row of usageDays ?? []) db.insert(sqlite.usageDays).values(row).run();
    for (const row of auditCheckpoints ?? []) db.insert(sqlite.auditCheckpoints).values(row).run();
  });
}

/** As `insertIntoSqlite`. The ledger goes on after the last of its rows. */
export async function insertIntoPostgres(executor: Executor, rows: StoredRows): Promise<void> {
  const { organizations, projects, apiKeys, payments, ledgerEntries } = rows;
  const { usageRecords, ledgerDays, usageDays, auditCheckpoints } = rows;
  await executor.transaction(async (transaction) => {
    const insert = async <T>(given: readonly T[] | undefined, into: (rows: T[]) => PromiseLike<unknown>) => {
      if (given !== undefined && given.length > 0) await into([...given]);
    };
    await insert(organizations, (given) => transaction.insert(postgres.organizations).values(given));
    await insert(projects, (given) => transaction.insert(postgres.projects).values(given));
    await insert(apiKeys, (given) => transaction.insert(postgres.apiKeys).values(given));
    await insert(payments, (given) => transaction.insert(postgres.payments).values(given));
    await insert(ledgerEntries, (given) => transaction.insert(postgres.ledgerEntries).values(given));
    await insert(usageRecords, (given) => transaction.insert(postgres.usageRecords).values(given));
    await insert(ledgerDays, (given) => transaction.insert(postgres.ledgerDays).values(given));
    await insert(usageDays, (given) => transaction.insert(postgres.usageDays).values(given));
    await insert(auditCheckpoints, (given) => transaction.insert(postgres.auditCheckpoints).values(given));
    if (ledgerEntries !== undefined) {
      await transaction.execute(
        sql`SELECT setval(pg_get_serial_sequence('ledger_entries', 'id'), max(id)) FROM ${postgres.ledgerEntries}`,
      );
    }
  });
}
