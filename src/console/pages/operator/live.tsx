import { useMemo, useState } from 'preact/hooks';
import { type AnswerOf, api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { Chart } from '../components/chart.tsx';
import type { ChartSeries } from '../components/chart-series.ts';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { Tile } from '../components/tile.tsx';
import { formatBytes, formatDuration, formatNumber, formatPercent } from '../format.ts';
import { usePolled } from '../use-polled.ts';

const POLL_MS = 2_000;
/** Rates are means of the last seconds, because single seconds vary too much. */
const RATE_SECONDS = 10;

type Live = AnswerOf<typeof api.operator.live.get>;
type History = Live['history'];

/** The present state of the service, and its activity in the last minutes. */
export default function LivePage() {
  const [is_paused, setPaused] = useState(false);
  const live = usePolled(() => call(api.operator.live.get()), [], is_paused ? null : POLL_MS);
  return (
    <>
      <PageHeader
        title="Live"
        description={
          is_paused
            ? 'Paused.'
            : 'The last five minutes of this node by the second, updated every two seconds.'
        }
        actions={<Button onClick={() => setPaused(!is_paused)}>{is_paused ? 'Go on' : 'Pause'}</Button>}
      />
      <LoadedView loaded={live}>
        {(data) => (
          <div class="stack">
            <Tiles live={data} />
            <Charts history={data.history} />
          </div>
        )}
      </LoadedView>
    </>
  );
}

function Tiles({ live: { now_ms, queue, holds, problems, history } }: { readonly live: Live }) {
  const answered = rateOf(history.answered);
  const refused = rateOf(history.refused);
  const failed = rateOf(history.failed);
  const all = answered + refused + failed;
  const lag_ms = history.event_loop_lag_ms.slice(-RATE_SECONDS).filter((value) => value !== null);
  const memory_bytes = history.memory_bytes.findLast((value) => value !== null);
  const oldest =
    holds.oldest_at_ms === null
      ? 'none open'
      : `oldest ${formatDuration(Math.max(0, now_ms - holds.oldest_at_ms))}`;
  return (
    <dl class="tiles wide">
      <Tile title="Requests" value={`${formatNumber(all, 1)}/s`} note={`mean of ${RATE_SECONDS} s`} />
      <Tile
        title="Questions"
        value={`${formatNumber(rateOf(history.questions), 1)}/s`}
        note={`${formatNumber(rateOf(history.input_tokens))} tokens/s`}
      />
      <Tile
        title="Failed"
        value={all === 0 ? '0%' : formatPercent(failed / all)}
        note={all === 0 ? 'nothing asked' : `${formatPercent(refused / all)} refused`}
      />
      <Tile
        title="At the models"
        value={formatNumber(queue.requests)}
        note={`${formatNumber(queue.waiting_plans)} plans wait, ${formatNumber(queue.running_tokens)} tokens run`}
      />
      <Tile
        title="Open holds"
        value={formatNumber(holds.open)}
        note={
          holds.unwritten === 0 ? oldest : `${oldest}, ${formatNumber(holds.unwritten)} wait to be released`
        }
      />
      <Tile
        title="Event-loop lag"
        value={lag_ms.length === 0 ? '–' : formatDuration(Math.max(...lag_ms))}
        note={`worst of ${RATE_SECONDS} s`}
      />
      <Tile
        title="Memory"
        value={memory_bytes == null ? '–' : formatBytes(memory_bytes)}
        note="of the process"
      />
      <Tile
        title="Problems"
        value={formatNumber(problems)}
        note={<a href="/console/operator/problems">since the start</a>}
      />
    </dl>
  );
}

interface LiveChart {
  readonly title: string;
  readonly seriesOf: (history: History) => readonly ChartSeries[];
  readonly format: (value: number) => string;
}

const CHARTS: readonly LiveChart[] = [
  {
    title: 'Requests per second',
    seriesOf: ({ answered, refused, failed }) => [
      { label: 'Answered', values: answered },
      { label: 'Refused', values: refused, color: 3 },
      { label: 'Failed', values: failed, color: 'danger' },
    ],
    format: (value) => formatNumber(value, 1),
  },
  {
    title: 'Questions per second',
    seriesOf: ({ questions }) => [{ label: 'Answered and charged', values: questions, color: 2 }],
    format: (value) => formatNumber(value, 1),
  },
  {
    title: 'Requests at the models',
    seriesOf: ({ model_requests }) => [{ label: 'Waiting or running', values: model_requests, color: 4 }],
    format: (value) => formatNumber(value, 1),
  },
  {
    title: 'Event-loop lag',
    seriesOf: ({ event_loop_lag_ms }) => [
      { label: 'Worst of the second', values: event_loop_lag_ms, color: 5 },
    ],
    format: formatDuration,
  },
];

function Charts({ history }: { readonly history: History }) {
  return (
    <div class="grid">
      {CHARTS.map((chart) => (
        <OneChart key={chart.title} chart={chart} history={history} />
      ))}
    </div>
  );
}

function OneChart({
  chart: { title, seriesOf, format },
  history,
}: {
  readonly chart: LiveChart;
  readonly history: History;
}) {
  const series = useMemo(() => seriesOf(history), [history, seriesOf]);
  return <Chart title={title} times_ms={history.times_ms} series={series} format={format} height_px={160} />;
}

function rateOf(counts: readonly number[]): number {
  const last = counts.slice(-RATE_SECONDS);
  return last.reduce((sum, count) => sum + count, 0) / RATE_SECONDS;
}
