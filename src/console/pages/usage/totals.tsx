import { Tile } from '../components/tile.tsx';
import {
  formatCompact,
  formatDuration,
  formatMoney,
  formatMoneyShort,
  formatNumber,
  formatPercent,
} from '../format.ts';
import { errorShareOf, type UsageSums } from './series.ts';

/** The totals of the shown requests. */
export function Totals({ totals }: { readonly totals: UsageSums }) {
  const { latency_ms } = totals;
  const share = errorShareOf(totals);
  return (
    <dl class="tiles">
      <Tile title="Requests" value={formatNumber(totals.requests)} />
      <Tile title="Questions" value={formatNumber(totals.questions)} />
      <Tile
        title="Input tokens"
        value={formatCompact(totals.input_tokens)}
        hint={formatNumber(totals.input_tokens)}
      />
      <Tile
        title="Cost"
        value={formatMoneyShort(totals.cost_micros)}
        hint={formatMoney(totals.cost_micros)}
      />
      <Tile
        title="Median latency"
        value={latency_ms === null ? '–' : formatDuration(latency_ms.p50)}
        note={
          latency_ms === null
            ? undefined
            : `${percentile('p90', latency_ms.p90)} · ${percentile('p99', latency_ms.p99)}`
        }
      />
      <Tile
        title="Errors"
        value={share === null ? '–' : formatPercent(share)}
        note={totals.statuses
          .filter(({ status }) => status !== 200)
          .map(({ status, requests }) => `${formatNumber(requests)} × ${status}`)
          .join(' · ')}
      />
    </dl>
  );
}

/** Returns a percentile without line breaks. */
function percentile(name: string, duration_ms: number): string {
  return `${name} ${formatDuration(duration_ms)}`.replaceAll(' ', '\u00a0');
}
