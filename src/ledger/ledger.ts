import { and, desc, eq, isNull, notExists, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/sqlite-core';
import type { Db } from '../../db/sqlite/connection.ts';
import { ledgerEntries, organizations, projectMonths, projects } from '../../db/sqlite/schema.ts';
import { monthOf } from './month.ts';

/** What a request asks to reserve: its worst-case cost, against the organization's credit and the project's limit. */
export interface HoldRequest {
  readonly organization_id: string;
  readonly project_id: string;
  readonly request_id: string;
  readonly amount_micros: number;
  readonly at_ms: number;
}

/** Credit that is reserved until it is charged or released. */
export interface Hold {
  readonly entry_id: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly amount_micros: number;
  /** The UTC month (`YYYY-MM`) that the hold, and its charge, count in. */
  readonly month: string;
}

export type HoldRefusal = 'insufficient_credit' | 'project_spend_limit';
export type HoldResult =
  | { readonly held: true; readonly hold: Hold }
  | { readonly held: false; readonly refusal: HoldRefusal };

/** Money that a payment brought, or that a refund takes back. */
export interface PaymentMovement {
  readonly organization_id: string;
  readonly amount_micros: number;
  readonly payment_id: string;
  readonly at_ms: number;
}

/** The hold has ended already, or there is no such hold. */
export class HoldNotOpen extends Error {
  override readonly name = 'HoldNotOpen';
}

/** The organization, or the project in it, does not exist. */
export class UnknownAccount extends Error {
  override readonly name = 'UnknownAccount';
}

/** A refund of more than was paid in all. */
export class RefundExceedsPayments extends Error {
  override readonly name = 'RefundExceedsPayments';
}

/**
 * The only writer of money. Every method is synchronous and belongs inside a transaction (`GroupCommit.run`,
 * `transact`): it is durable when that has committed. The first statement of each method is the one that can be
 * refused, so a method that throws has written nothing.
 */
export class Ledger {
  readonly #statements: Statements;

  constructor(db: Db) {
    this.#statements = prepare(db);
  }

  /**
   * Reserves the amount when the project's monthly limit and the organization's credit both allow it; a refusal names
   * the limit first, and writes nothing (spec, "Credit hold for one request"). A project that has spent its limit is
   * refused even a hold of nothing. Throws `UnknownAccount`, and `RangeError` for an amount that is not a whole number
   * of micro-dollars from 0.
   */
  hold(request: HoldRequest): HoldResult {
    requireMicros(request.amount_micros, 0);
    const month = monthOf(request.at_ms);
    const asked = { ...request, month };
    const entry = this.#statements.insertHold.get(asked);
    if (entry === undefined) return { held: false, refusal: this.#refusal(asked) };
    this.#statements.reserveCredit.run(asked);
    this.#statements.reserveMonth.run(asked);
    const { organization_id, project_id, amount_micros } = request;
    return { held: true, hold: { entry_id: entry.id, organization_id, project_id, amount_micros, month } };
  }

  /**
   * Whether a hold of the amount would be placed now, or what refuses it, as `hold` would; writes nothing. Throws as
   * `hold` does.
   */
  refusalOf(request: Omit<HoldRequest, 'request_id'>): HoldRefusal | null {
    requireMicros(request.amount_micros, 0);
    const asked = { ...request, month: monthOf(request.at_ms) };
    return this.#statements.covers.get(asked) === undefined ? this.#refusal(asked) : null;
  }

  /**
   * Ends the hold by deducting the cost, from 0 to the amount held; the remainder is free again. Throws `HoldNotOpen`,
   * and `RangeError` for any other cost.
   */
  charge(hold: Hold, cost_micros: number, at_ms: number): void {
    requireMicros(cost_micros, 0, hold.amount_micros);
    const { entry_id } = hold;
    const charged = this.#statements.insertCharge.get({ entry_id, cost_micros, at_ms });
    if (charged === undefined) throw notOpen(entry_id);
    this.#statements.settleCredit.run({ ...charged, cost_micros });
    this.#statements.settleMonth.run({ ...charged, cost_micros });
  }

  /**
   * Ends the hold by freeing all of it. Its entry is taken away again, so that requests that cost nothing leave nothing
   * in the ledger. Throws `HoldNotOpen`.
   */
  release(hold: Pick<Hold, 'entry_id'>): void {
    const released = this.#statements.deleteHold.get({ entry_id: hold.entry_id });
    if (released === undefined) throw notOpen(hold.entry_id);
    const freed = { ...released, held_delta_micros: -released.held_delta_micros, cost_micros: 0 };
    this.#statements.settleCredit.run(freed);
    this.#statements.settleMonth.run(freed);
  }

  /** Whether the hold was charged. */
  isCharged(hold: Hold): boolean {
    return this.#statements.chargeOfHold.get({ entry_id: hold.entry_id }) !== undefined;
  }

  /**
   * Releases what a process that is gone left open; for the start, before the first request. Returns how many holds
   * that were.
   */
  releaseOpenHolds(): number {
    const open_holds = this.#statements.countOpenHolds.get()?.open_holds ?? 0;
    if (open_holds === 0) return 0;
    const open = this.#statements.openHolds.all({ open_holds });
    for (const { id } of open) this.release({ entry_id: id });
    return open.length;
  }

  /** Adds paid credit. Throws `UnknownAccount`, and SQLite's constraint error for a payment that was entered before. */
  topUp(movement: PaymentMovement): void {
    requireMicros(movement.amount_micros, 1);
    if (this.#statements.insertTopUp.get({ ...movement }) === undefined) throw unknownOrganization(movement);
    this.#statements.addPaid.run({ ...movement });
  }

  /**
   * Takes refunded credit back, below zero if it was spent (spec, "Organization tier"). When nothing is left of what
   * was paid, the days since the first payment start anew with the next one. Throws `UnknownAccount`,
   * `RefundExceedsPayments`, and SQLite's constraint error for a refund that was entered before.
   */
  refund(movement: PaymentMovement): void {
    requireMicros(movement.amount_micros, 1);
    const organization = this.#statements.organization.get({ ...movement });
    if (organization === undefined) throw unknownOrganization(movement);
    if (this.#statements.insertRefund.get({ ...movement }) === undefined) {
      throw new RefundExceedsPayments(`${movement.organization_id} paid less than the refund in all`);
    }
    this.#statements.takePaid.run({ ...movement });
  }

  #refusal(asked: Omit<HoldRequest, 'request_id'> & { readonly month: string }): HoldRefusal {
    const project = this.#statements.projectAllows.get({ ...asked });
    if (project === undefined) {
      throw new UnknownAccount(`${asked.organization_id} has no project ${asked.project_id}`);
    }
    return project.allows ? 'insufficient_credit' : 'project_spend_limit';
  }
}

function unknownOrganization(movement: PaymentMovement): UnknownAccount {
  return new UnknownAccount(`there is no organization ${movement.organization_id}`);
}

function notOpen(entry_id: number): HoldNotOpen {
  return new HoldNotOpen(`hold ${entry_id} has ended or does not exist`);
}

function requireMicros(amount: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(amount) || amount < least || amount > most) {
    throw new RangeError(`${amount} is not a whole number of micro-dollars from ${least} to ${most}`);
  }
}

type Statements = ReturnType<typeof prepare>;

/** Every statement of the ledger, prepared once. */
function prepare(db: Db) {
  const { placeholder } = sql;
  const held = alias(ledgerEntries, 'held');
  const ended = alias(ledgerEntries, 'ended');
  const moved = {
    organization_id: ledgerEntries.organization_id,
    project_id: ledgerEntries.project_id,
    month: ledgerEntries.month,
    held_delta_micros: ledgerEntries.held_delta_micros,
  };
  const amount = placeholder('amount_micros');
  const cost = placeholder('cost_micros');

  const ofProjectMonth = and(
    eq(projectMonths.project_id, projects.id),
    eq(projectMonths.month, placeholder('month')),
  );
  const spent = sql`coalesce(${projectMonths.spent_micros}, 0)`;
  const projectAllows = sql<number>`(${projects.spend_limit_micros} IS NULL
    OR (${spent} < ${projects.spend_limit_micros}
      AND ${spent} + coalesce(${projectMonths.held_micros}, 0) + ${amount} <= ${projects.spend_limit_micros}))`;
  const ofRequest = and(
    eq(projects.id, placeholder('project_id')),
    eq(projects.organization_id, placeholder('organization_id')),
  );
  const paidMovement = (kind: 'top_up' | 'refund') => sql`NULL, ${organizations.id}, NULL, ${kind},
    ${kind === 'top_up' ? sql`${amount}` : sql`-${amount}`}, 0, NULL, NULL, NULL, ${placeholder('payment_id')}, ${placeholder('at_ms')}`;

  const creditCovers = sql`${organizations.credit_micros} - ${organizations.held_micros} >= ${amount}`;

  return {
    insertHold: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT NULL, ${organizations.id}, ${projects.id}, 'hold', 0, ${amount}, NULL,
          ${placeholder('request_id')}, ${placeholder('month')}, NULL, ${placeholder('at_ms')}
        FROM ${projects}
        JOIN ${organizations} ON ${eq(organizations.id, projects.organization_id)}
        LEFT JOIN ${projectMonths} ON ${ofProjectMonth}
        WHERE ${ofRequest} AND ${projectAllows} AND ${creditCovers}`,
      )
      .returning({ id: ledgerEntries.id })
      .prepare(),
    covers: db
      .select({ id: projects.id })
      .from(projects)
      .innerJoin(organizations, eq(organizations.id, projects.organization_id))
      .leftJoin(projectMonths, ofProjectMonth)
      .where(and(ofRequest, projectAllows, creditCovers))
      .prepare(),
    projectAllows: db
      .select({ allows: projectAllows })
      .from(projects)
      .leftJoin(projectMonths, ofProjectMonth)
      .where(ofRequest)
      .prepare(),
    reserveCredit: db
      .update(organizations)
      .set({
        held_micros: sql`${organizations.held_micros} + ${amount}`,
        open_holds: sql`${organizations.open_holds} + 1`,
      })
      .where(eq(organizations.id, placeholder('organization_id')))
      .prepare(),
    reserveMonth: db
      .insert(projectMonths)
      .values({ project_id: placeholder('project_id'), month: placeholder('month'), held_micros: amount })
      .onConflictDoUpdate({
        target: [projectMonths.project_id, projectMonths.month],
        set: { held_micros: sql`${projectMonths.held_micros} + excluded.held_micros` },
      })
      .prepare(),
    insertCharge: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT NULL, ${held.organization_id}, ${held.project_id}, 'charge', -${cost},
          -${held.held_delta_micros}, ${held.id}, NULL, ${held.month}, NULL, ${placeholder('at_ms')}
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
      .where(eq(organizations.id, placeholder('organization_id')))
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
    // Newest first and no more than there are, so that old history is not read.
    openHolds: db
      .select({ id: held.id })
      .from(held)
      .leftJoin(ended, eq(ended.hold_entry_id, held.id))
      .where(and(eq(held.kind, 'hold'), isNull(ended.id)))
      .orderBy(desc(held.id))
      .limit(placeholder('open_holds'))
      .prepare(),
    organization: db
      .select({ id: organizations.id })
      .from(organizations)
      .where(eq(organizations.id, placeholder('organization_id')))
      .prepare(),
    insertTopUp: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT ${paidMovement('top_up')} FROM ${organizations}
        WHERE ${organizations.id} = ${placeholder('organization_id')}`,
      )
      .returning({ id: ledgerEntries.id })
      .prepare(),
    addPaid: db
      .update(organizations)
      .set({
        credit_micros: sql`${organizations.credit_micros} + ${amount}`,
        paid_micros: sql`${organizations.paid_micros} + ${amount}`,
        first_paid_at_ms: sql`min(coalesce(${organizations.first_paid_at_ms}, ${placeholder('at_ms')}), ${placeholder('at_ms')})`,
      })
      .where(eq(organizations.id, placeholder('organization_id')))
      .prepare(),
    insertRefund: db
      .insert(ledgerEntries)
      .select(
        sql`SELECT ${paidMovement('refund')} FROM ${organizations}
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
      .where(eq(organizations.id, placeholder('organization_id')))
      .prepare(),
  };
}
