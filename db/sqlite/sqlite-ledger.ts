import { requireMicros } from '../../src/contract/money.ts';
import { HoldNotOpen, RefundExceedsPayments, UnknownAccount } from '../../src/ledger/errors.ts';
import type { Hold, HoldRefusal, HoldRequest, HoldResult } from '../../src/store/hold.ts';
import type { PaidMovement, PaymentMovement } from '../../src/store/ledger-records.ts';
import { monthOf } from '../../src/time/month.ts';
import type { Db } from './connection.ts';
import { type LedgerStatements, prepareLedger } from './ledger-statements.ts';

/**
 * The only writer of money in SQLite. Every method is synchronous. Those that write need a transaction
 * (`GroupCommit.run`, `transact`), and are durable after its commit. Only the first statement of a method can be
 * refused, so a method that throws has written nothing.
 */
export class SqliteLedger {
  #prepared: LedgerStatements | undefined;

  constructor(private readonly db: Db) {}

  /** Prepared at first use, because most commands move no money. */
  get #statements(): LedgerStatements {
    this.#prepared ??= prepareLedger(this.db);
    return this.#prepared;
  }

  /**
   * Places a hold for the process, as `Books.hold` describes. Throws `UnknownAccount`, and `RangeError` for an amount
   * that is not a whole number of micro-dollars from 0.
   */
  hold(request: HoldRequest, process_id: string): HoldResult {
    requireMicros(request.amount_micros, 0);
    const month = monthOf(request.at_ms);
    const { request_id, organization_id, project_id, amount_micros, api_key_id = null } = request;
    const asked = { ...request, api_key_id, month, process_id };
    const entry = this.#statements.insertHold.get(asked);
    if (entry === undefined) return { held: false, ...this.#refusal(asked) };
    this.#statements.reserveCredit.run(asked);
    this.#statements.reserveMonth.run(asked);
    const hold = {
      entry_id: entry.id,
      request_id,
      organization_id,
      project_id,
      amount_micros,
      month,
      api_key_id,
    };
    return { held: true, hold };
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
   * Ends the hold without a cost. Deletes its entry, so that requests without a cost leave nothing in the ledger.
   * Throws `HoldNotOpen`.
   */
  release(hold: Pick<Hold, 'entry_id'>): void {
    const released = this.#statements.deleteHold.get({ entry_id: hold.entry_id });
    if (released === undefined) throw notOpen(hold.entry_id);
    const freed = { ...released, held_delta_micros: -released.held_delta_micros, cost_micros: 0 };
    this.#statements.settleCredit.run(freed);
    this.#statements.settleMonth.run(freed);
  }

  /** Returns true if the hold was charged. */
  isCharged(hold: Hold): boolean {
    return this.#statements.chargeOfHold.get({ entry_id: hold.entry_id }) !== undefined;
  }

  /** Releases the open holds of all processes, at the start before the first request. Returns their number. */
  releaseOpenHolds(): number {
    const open_holds = this.#statements.countOpenHolds.get()?.open_holds ?? 0;
    if (open_holds === 0) return 0;
    const open = this.#statements.openHolds.all({ open_holds });
    for (const { id } of open) this.release({ entry_id: id });
    return open.length;
  }

  /** Implements `LedgerRecords.topUp`. Throws `UnknownAccount`, and SQLite's constraint error for a known payment. */
  topUp(movement: PaidMovement): void {
    requireMicros(movement.amount_micros, 1);
    if (this.#statements.insertTopUp.get({ ...movement }) === undefined) throw unknownOrganization(movement);
    this.#statements.addPaid.run({ paid_at_ms: movement.at_ms, ...movement });
  }

  /**
   * Implements `LedgerRecords.refund`. Throws `UnknownAccount`, `RefundExceedsPayments`, and SQLite's constraint error
   * for a known refund.
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

  #refusal(asked: Omit<HoldRequest, 'api_key_id'> & Pick<Hold, 'api_key_id' | 'month'>): HoldRefusal {
    const funds = this.#statements.funds.get({ ...asked });
    if (funds === undefined) {
      throw new UnknownAccount(`${asked.organization_id} has no project ${asked.project_id}`);
    }
    const { project, spend_limit_micros, api_key, monthly_limit_micros, available_micros } = funds;
    if (!funds.project_allows && spend_limit_micros !== null)
      return { refusal: 'project_spend_limit', project, spend_limit_micros };
    if (!funds.key_allows && monthly_limit_micros !== null && api_key !== null)
      return { refusal: 'api_key_spend_limit', api_key, monthly_limit_micros };
    return { refusal: 'insufficient_credit', available_micros };
  }
}

function unknownOrganization(movement: PaymentMovement): UnknownAccount {
  return new UnknownAccount(`there is no organization ${movement.organization_id}`);
}

function notOpen(entry_id: number): HoldNotOpen {
  return new HoldNotOpen(`hold ${entry_id} has ended or does not exist`);
}
