import { quantile } from '../support/statistics.ts';
import { CUT, NO_NODE, type Seen } from './clients.ts';

/** When a fault began and was mended, and how long before and after it is looked at. */
export interface FaultTimes {
  readonly name: string;
  readonly before_ms: number;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly after_ms: number;
  readonly loses_windows: boolean;
}

/** What clients saw in one phase of a fault. */
export interface Phase {
  readonly fault: string;
  readonly phase: 'before' | 'during' | 'after';
  readonly seconds: number;
  readonly answered_per_s: number;
  /** Of the requests that were answered with 200. */
  readonly median_ms: number;
  readonly p99_ms: number;
  /** The longest time in which nobody was answered. */
  readonly gap_ms: number;
  /** What clients were told instead, without what their organization's own bounds cause. */
  readonly refusals: ReadonlyMap<string, number>;
}

/** What a client may be told because of a fault, whatever its organization may do. */
export const ALLOWED = new Set([
  '200',
  CUT,
  NO_NODE,
  '503 billing_unavailable',
  '503 auth_unavailable',
  '503 catalog_unavailable',
]);

/**
 * A request belongs to the time during a fault if any of it did. The organizations' own refusals are those that they get
 * without any fault.
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

/** The phases as a table in Markdown. */
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
