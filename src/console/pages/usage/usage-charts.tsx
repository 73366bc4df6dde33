import { useMemo } from 'preact/hooks';
import type { Grouping } from '../../../store/groupings.ts';
import { Chart } from '../components/chart.tsx';
import type { ChartSeries } from '../components/chart-series.ts';
import { formatCompact, formatDuration, formatMoneyTick, formatPercent } from '../format.ts';
import { GroupedChart } from './grouped-chart.tsx';
import { errorShareOf, type UsageSeries } from './series.ts';
import type { Measure, Zoom } from './view.ts';

const SMALL_HEIGHT_PX = 150;
/** As high as two small ones, with their heads and the gap. */
const LARGE_HEIGHT_PX = 390;

interface UsageChart {
  readonly title: string;
  readonly kind: 'lines' | 'bars';
  readonly format: (value: number) => string;
  readonly series: readonly ChartSeries[];
}

/** Charts of the usage over time: a large one, and small ones beside it. Dragging over any of them zooms all. */
export function UsageCharts({
  series,
  onZoom,
  ...chosen
}: {
  readonly organization_id: string;
  readonly series: UsageSeries;
  readonly group_by: Grouping;
  readonly measure: Measure;
  readonly onGroup: (group_by: Grouping) => void;
  readonly onMeasure: (measure: Measure) => void;
  /** Called with the wanted part; null for the whole span. */
  readonly onZoom: (zoom: Zoom | null) => void;
}) {
  const times_ms = useMemo(() => series.buckets.map(({ start_ms }) => start_ms), [series]);
  const charts = useMemo(() => chartsOf(series), [series]);
  return (
    <div class="chart-board has-small">
      <GroupedChart series={series} height_px={LARGE_HEIGHT_PX} onZoom={onZoom} {...chosen} />
      {charts.map(({ title, ...chart }) => (
        <Chart
          key={title}
          title={title}
          times_ms={times_ms}
          bucket_ms={series.bucket_ms}
          height_px={SMALL_HEIGHT_PX}
          onZoom={onZoom}
          {...chart}
        />
      ))}
    </div>
  );
}

function chartsOf({ buckets }: UsageSeries): readonly UsageChart[] {
  const each = (label: string, of: (bucket: UsageSeries['buckets'][number]) => number | null) => ({
    label,
    values: buckets.map(of),
  });
  return [
    {
      title: 'Cost',
      kind: 'bars',
      format: formatMoneyTick,
      series: [{ ...each('Cost', ({ cost_micros }) => cost_micros), color: 2 }],
    },
    {
      title: 'Latency',
      kind: 'lines',
      format: formatDuration,
      series: [
        each('p50', ({ latency_ms }) => latency_ms?.p50 ?? null),
        { ...each('p90', ({ latency_ms }) => latency_ms?.p90 ?? null), color: 3 },
        { ...each('p99', ({ latency_ms }) => latency_ms?.p99 ?? null), color: 4 },
      ],
    },
    {
      title: 'Error share',
      kind: 'lines',
      format: formatPercent,
      series: [{ ...each('Errors', errorShareOf), color: 'danger' }],
    },
    {
      title: 'Input tokens',
      kind: 'bars',
      format: formatCompact,
      series: [{ ...each('Tokens', ({ input_tokens }) => input_tokens), color: 4 }],
    },
    {
      title: 'Questions',
      kind: 'bars',
      format: formatCompact,
      series: [{ ...each('Questions', ({ questions }) => questions), color: 5 }],
    },
  ];
}
