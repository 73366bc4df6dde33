import { and, type Column, desc, eq, inArray, isNull, notExists, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/sqlite-core';
import { WHOLE_PROJECT } from '../tables.ts';
import type { Db } from './connection.ts';
import { apiKeys, ledgerEntries, organizations, projectMonths, projects } from './schema.ts';

const { placeholder } = sql;
const held = alias(ledgerEntries, 'held');
const ended = alias(ledgerEntries, 'ended');
const moved = {
  organization_id: ledgerEntries.organization_id,
  project_id: ledgerEntries.project_id,
  month: ledgerEntries.month,
  held_delta_micros: ledgerEntries.held_delta_micros,
  api_key_id: ledgerEntries.api_key_id,
};
const amount = placeholder('amount_micros');
const cost = placeholder('cost_micros');
const ofOrganization = eq(organizations.id, placeholder('organization_id'));

export type LedgerStatements = ReturnType<typeof prepareLedger>;

/** Prepares all statements of the ledger. `SqliteLedger` checks their parameters and reads their results. */
export function prepareLedger(db: Db) {
  return { ...prepareHolds(db), ...prepareEnds(db), ...preparePayments(db) };
}

function prepareHolds(db: Db) {
  const ofKey = eq(apiKeys.id, placeholder('api_key_id'));
  /** SQLite reads the months only where there is a limit. */
  const allows = (limit: Column, api_key_id: Column | string) => sql<number>`(${limit} IS NULL OR (
    SELECT coalesce(sum(${projectMonths.spent_micros}), 0) < ${limit}
      AND coalesce(sum(${projectMonths.spent_micros} + ${projectMonths.held_micros}), 0) + ${amount} <= ${limit}
    FROM ${projectMonths}
    WHERE ${and(
      eq(projectMonths.project_id, projects.id),
      eq(projectMonths.month, placeholder('month')),
      eq(projectMonths.api_key_id, api_key_id),
    )}))`;
  const projectAllows = allows(projects.spend_limit_micros, WHOLE_PROJECT);
  const keyAllows = allows(apiKeys.monthly_limit_micros, apiKeys.id);
  const ofRequest = and(
    eq(projects.id, placeholder('project_id')),
    eq(projects.organization_id, placeholder('organization_id')),
  );
  const availableMicros = sql<number>`${organizations.credit_micros} - ${organizations.held_micros}`;
  return {
    insertHold: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT NULL, ${organizations.id}, ${projects.id}, 'hold', 0, ${amount}, NULL,
          ${placeholder('request_id')}, ${placeholder('month')}, NULL, ${placeholder('at_ms')}, ${placeholder('process_id')},
          ${placeholder('api_key_id')}
        FROM ${projects}
        JOIN ${organizations} ON ${eq(organizations.id, projects.organization_id)}
        LEFT JOIN ${apiKeys} ON ${ofKey}
        WHERE ${ofRequest} AND ${projectAllows} AND ${keyAllows} AND ${availableMicros} >= ${amount}`,
      )
      .returning({ id: ledgerEntries.id })
      .prepare(),
    /** Selects whether the limits allow the hold, and what a refusal names. */
    funds: db
      .select({
        project_allows: projectAllows,
        project: projects.name,
        spend_limit_micros: projects.spend_limit_micros,
        key_allows: keyAllows,
        api_key: apiKeys.name,
        monthly_limit_micros: apiKeys.monthly_limit_micros,
        available_micros: availableMicros,
      })
      .from(projects)
      .innerJoin(organizations, eq(organizations.id, projects.organization_id))
      .leftJoin(apiKeys, ofKey)
      .where(ofRequest)
      .prepare(),
    reserveCredit: db
      .update(organizations)
      .set({
        held_micros: sql`${organizations.held_micros} + ${amount}`,
        open_holds: sql`${organizations.open_holds} + 1`,
      })
      .where(ofOrganization)
      .prepare(),
    reserveMonth: db
      .insert(projectMonths)
      .select(
        sql`SELECT ${placeholder('project_id')}, ${placeholder('month')}, 0, ${amount}, ${WHOLE_PROJECT}
        UNION ALL
        SELECT ${placeholder('project_id')}, ${placeholder('month')}, 0, ${amount}, ${placeholder('api_key_id')}
        WHERE ${placeholder('api_key_id')} <> ${WHOLE_PROJECT}`,
      )
      .onConflictDoUpdate({
        target: [projectMonths.project_id, projectMonths.month, projectMonths.api_key_id],
        set: { held_micros: sql`${projectMonths.held_micros} + excluded.held_micros` },
      })
      .prepare(),
  };
}

/** Prepares what ends holds, and what finds open ones. */
function prepareEnds(db: Db) {
  return {
    insertCharge: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT NULL, ${held.organization_id}, ${held.project_id}, 'charge', -${cost},
          -${held.held_delta_micros}, ${held.id}, NULL, ${held.month}, NULL, ${placeholder('at_ms')}, NULL, ${held.api_key_id}
        FROM ${ledgerEntries} AS ${sql.identifier('held')}
        WHERE ${held.id} = ${placeholder('entry_id')} AND ${held.kind} = 'hold'`,
      )
      .onConflictDoNothing()
      .returning(moved)
      .prepare(),
    deleteHold: db
      .delete(ledgerEntries)
      .where(
        and(
          eq(ledgerEntries.id, placeholder('entry_id')),
          eq(ledgerEntries.kind, 'hold'),
          notExists(
            db
              .select({ id: ended.id })
              .from(ended)
              .where(eq(ended.hold_entry_id, placeholder('entry_id'))),
          ),
        ),
      )
      .returning(moved)
      .prepare(),
    settleCredit: db
      .update(organizations)
      .set({
        credit_micros: sql`${organizations.credit_micros} - ${cost}`,
        held_micros: sql`${organizations.held_micros} + ${placeholder('held_delta_micros')}`,
        open_holds: sql`${organizations.open_holds} - 1`,
      })
      .where(ofOrganization)
      .prepare(),
    settleMonth: db
      .update(projectMonths)
      .set({
        spent_micros: sql`${projectMonths.spent_micros} + ${cost}`,
        held_micros: sql`${projectMonths.held_micros} + ${placeholder('held_delta_micros')}`,
      })
      .where(
        and(
          eq(projectMonths.project_id, placeholder('project_id')),
          eq(projectMonths.month, placeholder('month')),
          inArray(projectMonths.api_key_id, [WHOLE_PROJECT, placeholder('api_key_id')]),
        ),
      )
      .prepare(),
    chargeOfHold: db
      .select({ id: ledgerEntries.id })
      .from(ledgerEntries)
      .where(and(eq(ledgerEntries.hold_entry_id, placeholder('entry_id')), eq(ledgerEntries.kind, 'charge')))
      .prepare(),
    countOpenHolds: db
      .select({ open_holds: sql<number>`coalesce(sum(${organizations.open_holds}), 0)` })
      .from(organizations)
      .prepare(),
    // Newest first, limited by the number of open holds, so that old history is not read.
    openHolds: db
      .select({ id: held.id })
      .from(held)
      .leftJoin(ended, eq(ended.hold_entry_id, held.id))
      .where(and(eq(held.kind, 'hold'), isNull(ended.id)))
      .orderBy(desc(held.id))
      .limit(placeholder('open_holds'))
      .prepare(),
  };
}

/** Prepares the movements of paid credit. */
function preparePayments(db: Db) {
  const movement = (kind: 'top_up' | 'refund') => sql`NULL, ${organizations.id}, NULL, ${kind},
    ${kind === 'top_up' ? sql`${amount}` : sql`-${amount}`}, 0, NULL, NULL, NULL, ${placeholder('payment_id')}, ${placeholder('at_ms')}, NULL, NULL`;
  return {
    organization: db.select({ id: organizations.id }).from(organizations).where(ofOrganization).prepare(),
    insertTopUp: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT ${movement('top_up')} FROM ${organizations}
        WHERE ${organizations.id} = ${placeholder('organization_id')}`,
      )
      .returning({ id: ledgerEntries.id })
      .prepare(),
    addPaid: db
      .update(organizations)
      .set({
        credit_micros: sql`${organizations.credit_micros} + ${amount}`,
        paid_micros: sql`${organizations.paid_micros} + ${amount}`,
        first_paid_at_ms: sql`min(coalesce(${organizations.first_paid_at_ms}, ${placeholder('paid_at_ms')}), ${placeholder('paid_at_ms')})`,
      })
      .where(ofOrganization)
      .prepare(),
    insertRefund: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT ${movement('refund')} FROM ${organizations}
        WHERE ${organizations.id} = ${placeholder('organization_id')} AND ${organizations.paid_micros} >= ${amount}`,
      )
      .returning({ id: ledgerEntries.id })
      .prepare(),
    takePaid: db
      .update(organizations)
      .set({
        credit_micros: sql`${organizations.credit_micros} - ${amount}`,
        paid_micros: sql`${organizations.paid_micros} - ${amount}`,
        // SQLite reads every column as it was before the statement.
        first_paid_at_ms: sql`iif(${organizations.paid_micros} = ${amount}, NULL, ${organizations.first_paid_at_ms})`,
      })
      .where(ofOrganization)
      .prepare(),
  };
}
