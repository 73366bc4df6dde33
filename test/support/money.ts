import { expect } from 'bun:test';
import { asc, eq } from 'drizzle-orm';
import { formatAudit, runAudit } from '../../db/sqlite/audit.ts';
import { ledgerEntries, organizations, usageRecords } from '../../db/sqlite/schema.ts';
import type { TestAccount, TestService } from './service.ts';

/** One US dollar in micro-dollars, by the contract. */
export const DOLLAR = 1_000_000;

type Books = Pick<TestService, 'db'>;
type Owner = Pick<TestAccount, 'organization_id'>;

/** What an organization has, what is reserved of it, and how many requests of it were recorded. */
export function booksOf({ db }: Books, { organization_id }: Owner) {
  const row = db.select().from(organizations).where(eq(organizations.id, organization_id)).get();
  if (row === undefined) throw new Error(`there is no organization ${organization_id}`);
  return {
    credit_micros: row.credit_micros,
    held_micros: row.held_micros,
    usage_rows: usageOf({ db }, { organization_id }).length,
  };
}

/** The usage rows of an organization, oldest first. */
export function usageOf({ db }: Books, { organization_id }: Owner) {
  return db
    .select()
    .from(usageRecords)
    .where(eq(usageRecords.organization_id, organization_id))
    .orderBy(asc(usageRecords.time_ms))
    .all();
}

/** The ledger of an organization, oldest first. */
export function ledgerOf({ db }: Books, { organization_id }: Owner) {
  return db
    .select()
    .from(ledgerEntries)
    .where(eq(ledgerEntries.organization_id, organization_id))
    .orderBy(asc(ledgerEntries.id))
    .all();
}

/** Resolves when the organization has that much held, as the server's work goes on. */
export async function untilHeld(books: Books, owner: Owner, held_micros: number): Promise<void> {
  while (booksOf(books, owner).held_micros !== held_micros)
    await new Promise((resolve) => setImmediate(resolve));
}

/** Stops the service after checking that its books balance and that no hold is left open. */
export async function closeAudited(service: TestService): Promise<void> {
  const report = runAudit(service.db);
  await service.close();
  expect(formatAudit(report)).toEndWith('The audit is clean.');
  expect(report.open_holds).toBe(0);
}
