import { MoneyTile, Tile } from '../components/tile.tsx';
import { formatCompact, formatDuration, formatNumber, formatPercent } from '../format.ts';
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
      <MoneyTile title="Cost" micros={totals.cost_micros} />
      <Tile
        title="Median latency"
        value={latency_ms === null ? '–' : formatDuration(latency_ms.p50)}
        notes={
          latency_ms === null
            ? []
            : [`p90 ${formatDuration(latency_ms.p90)}`, `p99 ${formatDuration(latency_ms.p99)}`]
        }
      />
      <Tile
        title="Errors"
        value={share === null ? '–' : formatPercent(share)}
        notes={totals.statuses
          .filter(({ status }) => status !== 200)
          .map(({ status, requests }) => `${formatNumber(requests)} × ${status}`)}
      />
    </dl>
  );
}
