import type { Books } from '../../src/store/books.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { median } from './statistics.ts';

const HELD_MICROS = 50;
const COST_MICROS = 30;
/** The credit of each organization, which is never spent. */
export const CREDIT_MICROS = 1_000_000_000_000;

/** The account of a pair. */
interface BenchAccount {
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
}

/** Returns the account of that number. */
export function benchAccount(number: number): BenchAccount {
  return { organization_id: `org_${number}`, project_id: `proj_${number}`, api_key_id: `key_${number}` };
}

/** The two writes that are measured. */
export type Writes = Pick<Books, 'hold' | 'charge'>;

type UnendedRow = Omit<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros'>;

function answered(row: UnendedRow): UsageRow {
  return { ...row, status: 200, questions: 1, input_tokens: 2 * COST_MICROS, cost_micros: COST_MICROS };
}

function failed(row: UnendedRow): UsageRow {
  return { ...row, status: 503, questions: 0, input_tokens: 0, cost_micros: 0 };
}

/** The result of a run. */
export interface Pairs {
  readonly pairs_per_s: number;
  /** The median time of a hold. */
  readonly median_ms: number;
}

/** Measures the pairs that the callers write in that time. The pairs rotate over the organizations. */
export async function measurePairs(
  writes: Writes,
  callers: number,
  organizations: number,
  duration_ms: number,
): Promise<Pairs> {
  const started_ms = performance.now();
  const hold_ms: number[] = [];
  let turn = 0;
  const call = async () => {
    while (performance.now() - started_ms < duration_ms) {
      turn += 1;
      const account = benchAccount(turn % organizations);
      const at_ms = Date.now();
      const request_id = crypto.randomUUID();
      const asked_ms = performance.now();
      const asked = { ...account, request_id, amount_micros: HELD_MICROS, at_ms };
      const result = await writes.hold(asked);
      if (!result.held) throw new Error(result.refusal);
      hold_ms.push(performance.now() - asked_ms);
      const row = {
        ...account,
        model: 'decision-1',
        mode: 'fast',
        endpoint: '/v1/decisions',
        latency_ms: 101.234,
        request_id,
        time_ms: at_ms,
      } as const;
      await writes.charge(result.hold, COST_MICROS, answered(row), failed(row));
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const pairs_per_s = (1_000 * hold_ms.length) / (performance.now() - started_ms);
  return { pairs_per_s, median_ms: median(hold_ms) };
}
