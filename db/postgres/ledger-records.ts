import { eq, sql } from 'drizzle-orm';
import { requireMicros } from '../../src/contract/money.ts';
import { RefundExceedsPayments, UnknownAccount } from '../../src/ledger/errors.ts';
import type { LedgerRecords, PaidMovement, PaymentMovement } from '../../src/store/ledger-records.ts';
import { firstRow } from '../records/first-row.ts';
import type { Executor } from './connection.ts';
import { ledgerEntries, organizations } from './schema.ts';

/**
 * Writes the movements of payments in PostgreSQL. Each is one statement that first updates the balance, which locks the
 * organization's row, and then draws the entry's id. So an organization's entries commit in the order of their ids.
 */
export class PostgresLedgerRecords implements LedgerRecords {
  constructor(private readonly executor: Executor) {}

  async topUp(movement: PaidMovement): Promise<void> {
    const { organization_id, amount_micros, payment_id, at_ms, paid_at_ms = at_ms } = movement;
    requireMicros(amount_micros, 1);
    const entered = await this.executor.execute(
      sql`WITH paid AS (
        UPDATE ${organizations} SET
          credit_micros = credit_micros + ${amount_micros},
          paid_micros = paid_micros + ${amount_micros},
          first_paid_at_ms = least(first_paid_at_ms, ${paid_at_ms})
        WHERE id = ${organization_id} RETURNING id
      )
      INSERT INTO ${ledgerEntries}
        (organization_id, kind, credit_delta_micros, held_delta_micros, payment_id, created_at_ms)
      SELECT id, 'top_up', ${amount_micros}, 0, ${payment_id}, ${at_ms} FROM paid RETURNING id`,
    );
    if (entered.length === 0) throw unknownOrganization(organization_id);
  }

  async refund({ organization_id, amount_micros, payment_id, at_ms }: PaymentMovement): Promise<void> {
    requireMicros(amount_micros, 1);
    const entered = await this.executor.execute(
      // PostgreSQL reads every column as it was before the statement.
      sql`WITH refunded AS (
        UPDATE ${organizations} SET
          credit_micros = credit_micros - ${amount_micros},
          paid_micros = paid_micros - ${amount_micros},
          first_paid_at_ms = CASE WHEN paid_micros = ${amount_micros} THEN NULL ELSE first_paid_at_ms END
        WHERE id = ${organization_id} AND paid_micros >= ${amount_micros} RETURNING id
      )
      INSERT INTO ${ledgerEntries}
        (organization_id, kind, credit_delta_micros, held_delta_micros, payment_id, created_at_ms)
      SELECT id, 'refund', -${amount_micros}::bigint, 0, ${payment_id}, ${at_ms} FROM refunded RETURNING id`,
    );
    if (entered.length > 0) return;
    const organization = await firstRow(
      this.executor
        .select({ id: organizations.id })
        .from(organizations)
        .where(eq(organizations.id, organization_id)),
    );
    if (organization === undefined) throw unknownOrganization(organization_id);
    throw new RefundExceedsPayments(`${organization_id} paid less than the refund in all`);
  }
}

function unknownOrganization(organization_id: string): UnknownAccount {
  return new UnknownAccount(`there is no organization ${organization_id}`);
}
