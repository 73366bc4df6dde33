import type {
  DeletedUsage,
  EntryPair,
  LedgerDay,
  RollUpRecords,
  UsageDay,
} from '../store/roll-up-records.ts';
import { PruneRefused } from './prune-refused.ts';

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
type Dated = Pick<UsageDay, 'day'>;
type LedgerTotal = Writable<LedgerDay> & { held_micros: number };

/**
 * Collects the ledger entries and usage rows that one transaction deletes, and writes them back as daily
 * totals.
 */
export class DayTotals {
  readonly #ledger = new Map<string, LedgerTotal>();
  readonly #usage = new Map<string, Writable<UsageDay>>();

  constructor(private readonly records: RollUpRecords) {}

  /** Deletes holds and their ends, each counted for the day of its request. */
  async takeEntries(pairs: readonly (EntryPair & Dated)[]): Promise<void> {
    const days = new Map<number, string>();
    for (const { hold_entry_id, end_entry_id, day } of pairs)
      days.set(hold_entry_id, day).set(end_entry_id, day);
    for (const entry of await this.records.deleteEntries(pairs)) {
      const { organization_id, project_id } = entry;
      const day = days.get(entry.entry_id);
      if (day === undefined) throw new PruneRefused(`entry ${entry.entry_id} was not asked for`);
      const key = JSON.stringify([project_id, day]);
      const total = this.#ledger.get(key) ?? {
        organization_id,
        project_id,
        day,
        last_entry_id: 0,
        charges: 0,
        charged_micros: 0,
        held_micros: 0,
      };
      total.last_entry_id = Math.max(total.last_entry_id, entry.entry_id);
      total.charges += entry.kind === 'charge' ? 1 : 0;
      total.charged_micros -= entry.credit_delta_micros;
      total.held_micros += entry.held_delta_micros;
      this.#ledger.set(key, total);
    }
  }

  /** Deletes the usage rows of those requests that have one, each counted for the day of its request. */
  async takeUsage(requests: readonly (Pick<DeletedUsage, 'request_id'> & Dated)[]): Promise<void> {
    const days = new Map(requests.map(({ request_id, day }) => [request_id, day]));
    for (const { request_id, ...row } of await this.records.deleteUsage([...days.keys()])) {
      const day = days.get(request_id);
      if (day === undefined) throw new PruneRefused(`request ${request_id} was not asked for`);
      const usage = { ...row, day, requests: 1 };
      const key = groupKey(usage);
      const total = this.#usage.get(key);
      if (total === undefined) {
        this.#usage.set(key, usage);
        continue;
      }
      total.requests += 1;
      total.questions += row.questions;
      total.input_tokens += row.input_tokens;
      total.cost_micros += row.cost_micros;
    }
  }

  /**
   * Adds the totals to those of the days, and verifies the books. No balance moved, nothing was held, and the
   * days' charges equal the cost of the days' usage. Throws `PruneRefused`.
   */
  async write(): Promise<void> {
    const days = [...this.#ledger.values()];
    const before = await this.records.chargedOnDays_micros(days);
    for (const { project_id, day, held_micros } of days) {
      if (held_micros !== 0) throw new PruneRefused(`${project_id} has a hold on ${day} that did not end`);
    }
    const charged = days.filter(({ charges }) => charges > 0);
    await this.records.addLedgerDays(charged.map(({ held_micros: _, ...day }) => day));
    await this.records.addUsageDays([...this.#usage.values()]);
    await this.#verify(days, before);
  }

  async #verify(days: readonly LedgerTotal[], before: readonly number[]): Promise<void> {
    const after = await this.records.chargedOnDays_micros(days);
    const costs = await this.records.costOfDays_micros(days);
    for (const [index, { project_id, day, charged_micros }] of days.entries()) {
      const charged = after[index] ?? 0;
      if (charged - (before[index] ?? 0) !== charged_micros) {
        throw new PruneRefused(`the charges of ${project_id} on ${day} would not add up`);
      }
      if (costs[index] !== charged) {
        throw new PruneRefused(`the usage of ${project_id} on ${day} would not cost what was charged`);
      }
    }
  }
}

function groupKey(usage: UsageDay): string {
  const { day, organization_id, project_id, api_key_id, model, mode, endpoint, status } = usage;
  return JSON.stringify([day, organization_id, project_id, api_key_id, model, mode, endpoint, status]);
}
