import { quantile } from '../support/statistics.ts';
import { CUT, NO_NODE, type Seen } from './clients.ts';

/** The times of a fault's begin and repair, and of the measurement around it. */
export interface FaultTimes {
  readonly name: string;
  readonly before_ms: number;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly after_ms: number;
  readonly loses_windows: boolean;
}

/** The clients' results in one phase of a fault. */
export interface Phase {
  readonly fault: string;
  readonly phase: 'before' | 'during' | 'after';
  readonly seconds: number;
  readonly answered_per_s: number;
  /** The latencies of requests with a 200. */
  readonly median_ms: number;
  readonly p99_ms: number;
  /** The longest time without any answer. */
  readonly gap_ms: number;
  /** The other answers, without those due to an organization's own limits. */
  readonly refusals: ReadonlyMap<string, number>;
}

/** The answers that a fault may cause, for any organization. */
export const ALLOWED = new Set([
  '200',
  CUT,
  NO_NODE,
  '503 billing_unavailable',
  '503 auth_unavailable',
  '503 catalog_unavailable',
]);

/**
 * Returns the phases of each fault. A request that overlaps a fault belongs to it. Refusals due to an organization's
 * own limits do not count.
 */
export function phasesOf(
  seen: readonly Seen[],
  times: FaultTimes,
  own_refusals: readonly (string | null)[],
): readonly Phase[] {
  const { name, before_ms, from_ms, to_ms, after_ms } = times;
  const phase = (
    which: Phase['phase'],
    begin_ms: number,
    end_ms: number,
    belongs: (one: Seen) => boolean,
  ) => {
    const own = seen.filter(belongs);
    const answered = own.filter(({ outcome }) => outcome === '200');
    const latencies = answered.map((one) => one.to_ms - one.from_ms);
    const ends = [begin_ms, ...answered.map((one) => one.to_ms).sort((a, b) => a - b), end_ms];
    const seconds = (end_ms - begin_ms) / 1_000;
    const refusals = new Map<string, number>();
    for (const { outcome, organization } of own) {
      if (outcome !== '200' && outcome !== own_refusals[organization])
        refusals.set(outcome, (refusals.get(outcome) ?? 0) + 1);
    }
    return {
      fault: name,
      phase: which,
      seconds,
      answered_per_s: answered.length / seconds,
      median_ms: quantile(latencies, 0.5),
      p99_ms: quantile(latencies, 0.99),
      gap_ms: Math.max(...ends.slice(1).map((end, index) => end - (ends[index] ?? end))),
      refusals,
    };
  };
  return [
    phase('before', before_ms, from_ms, (one) => one.from_ms >= before_ms && one.to_ms <= from_ms),
    phase('during', from_ms, to_ms, (one) => one.to_ms > from_ms && one.from_ms < to_ms),
    phase('after', to_ms, after_ms, (one) => one.from_ms >= to_ms && one.to_ms <= after_ms),
  ];
}

const number = (value: number, digits = 0) => (Number.isNaN(value) ? '–' : value.toFixed(digits));

/** Returns the phases as a Markdown table. */
export function tableOf(phases: readonly Phase[]): string {
  const rows = phases.map(
    ({ fault, phase, seconds, answered_per_s, median_ms, p99_ms, gap_ms, refusals }) => {
      const cells = [
        phase === 'before' ? fault : '',
        phase,
        number(seconds, 1),
        number(answered_per_s),
        number(median_ms),
        number(p99_ms),
        number(gap_ms),
        [...refusals].map(([refusal, count]) => `${count} × ${refusal}`).join(', '),
      ];
      return `| ${cells.join(' | ')} |`;
    },
  );
  return [
    '| fault | when | s | 200s a second | median ms | p99 ms | longest ms without a 200 | refused or cut |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
