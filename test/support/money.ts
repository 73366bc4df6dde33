import { expect } from 'bun:test';
import { asc, eq } from 'drizzle-orm';
import * as postgres from '../../db/postgres/schema.ts';
import * as sqlite from '../../db/sqlite/schema.ts';
import { formatAudit } from '../../src/store/audit-report.ts';
import { eventually } from './eventually.ts';
import type { TestAccount, TestService } from './service.ts';

/** One US dollar in micro-dollars, by the contract. */
export const DOLLAR = 1_000_000;

/** A new id of an entry by hand, as the operator's page draws one. */
export const newEntryId = () => `entry_${crypto.randomUUID()}`;

type Books = Pick<TestService, 'rows'>;
type Owner = Pick<TestAccount, 'organization_id'>;

/** Resolves with an organization's credit, held credit, and number of recorded requests. */
export async function booksOf({ rows }: Books, { organization_id }: Owner) {
  const [row] =
    rows.of === 'sqlite'
      ? rows.db.select().from(sqlite.organizations).where(eq(sqlite.organizations.id, organization_id)).all()
      : await rows.db
          .select()
          .from(postgres.organizations)
          .where(eq(postgres.organizations.id, organization_id));
  if (row === undefined) throw new Error(`there is no organization ${organization_id}`);
  return {
    credit_micros: row.credit_micros,
    held_micros: row.held_micros,
    usage_rows: (await usageOf({ rows }, { organization_id })).length,
  };
}

/** The usage rows of an organization, oldest first. */
export async function usageOf({ rows }: Books, { organization_id }: Owner) {
  if (rows.of === 'sqlite') {
    const { usageRecords } = sqlite;
    return rows.db
      .select()
      .from(usageRecords)
      .where(eq(usageRecords.organization_id, organization_id))
      .orderBy(asc(usageRecords.time_ms))
      .all();
  }
  const { usageRecords } = postgres;
  const found = await rows.db
    .select()
    .from(usageRecords)
    .where(eq(usageRecords.organization_id, organization_id))
    .orderBy(asc(usageRecords.time_ms), asc(usageRecords.row_id));
  // SQLite's rows have one too, which is no column.
  return found.map(({ row_id: _, ...row }) => row);
}

/** The ledger of an organization, oldest first. */
export async function ledgerOf({ rows }: Books, { organization_id }: Owner) {
  if (rows.of === 'sqlite') {
    const { ledgerEntries } = sqlite;
    return rows.db
      .select()
      .from(ledgerEntries)
      .where(eq(ledgerEntries.organization_id, organization_id))
      .orderBy(asc(ledgerEntries.id))
      .all();
  }
  const { ledgerEntries } = postgres;
  return await rows.db
    .select()
    .from(ledgerEntries)
    .where(eq(ledgerEntries.organization_id, organization_id))
    .orderBy(asc(ledgerEntries.id));
}

/** Resolves when the organization has that much held, as the server's work goes on. */
export async function untilHeld(books: Books, owner: Owner, held_micros: number): Promise<void> {
  await eventually(async () => (await booksOf(books, owner)).held_micros === held_micros);
}

/** Stops the service after checking that its books balance and that no hold is left open. */
export async function closeAudited(service: TestService): Promise<void> {
  const report = await service.database.audit();
  await service.close();
  expect(formatAudit(report)).toEndWith('The audit is clean.');
  expect(report.open_holds).toBe(0);
}
