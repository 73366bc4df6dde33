import uPlot from 'uplot';
import { formatTicks } from '../format.ts';
import { type ChartKind, type ChartSeries, variableOf } from './chart-series.ts';
import { type Span, zoneOf } from './chart-time.ts';

/** The steps of an axis of whole numbers: there is no half of a request. */
const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

/** The parts of a chart that change without another drawing of it. */
export interface LatestPlot {
  readonly format: (value: number) => string;
  readonly bucket_ms: number | undefined;
}

interface Plotted {
  readonly kind: ChartKind;
  readonly series: readonly ChartSeries[];
  readonly height_px: number;
  readonly is_whole: boolean;
  /** True for bars that begin at their times. */
  readonly has_buckets: boolean;
  readonly latest: () => LatestPlot;
  readonly onCursor: (index: number | null) => void;
  readonly onZoom: (span: Span) => void;
}

/** Returns uPlot's options for a chart that is drawn into that element, with its colours. */
export function plotOptions(element: HTMLElement, plotted: Plotted): uPlot.Options {
  const { kind, series, height_px, has_buckets, latest, onCursor, onZoom } = plotted;
  const colors = coloursOf(element, series);
  return {
    width: element.clientWidth,
    height: height_px,
    tzDate: (time_s) => {
      const date = new Date(time_s * 1_000);
      return zoneOf(latest().bucket_ms) === 'UTC' ? uPlot.tzDate(date, 'UTC') : date;
    },
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: true, y: false },
      points: { size: 7 },
    },
    scales: {
      x: { time: true, range: (self, low, high) => withLastBucket(self, low, high, latest().bucket_ms) },
      y: { range: (_, low, high) => rangeFromZero(low, high) },
    },
    axes: axesOf(colors, plotted),
    series: [
      {},
      ...series.map(({ label }, index) =>
        seriesOf(label, colors.series[index] ?? colors.text, { kind, has_buckets }),
      ),
    ],
    hooks: {
      setCursor: [(self) => onCursor(self.cursor.idx ?? null)],
      setSelect: [
        (self) => {
          const { left, width } = self.select;
          if (width <= 0) return;
          onZoom({
            from_ms: self.posToVal(left, 'x') * 1_000,
            to_ms: self.posToVal(left + width, 'x') * 1_000,
          });
        },
      ],
    },
  };
}

function axesOf(colors: Colours, { is_whole, latest }: Pick<Plotted, 'is_whole' | 'latest'>): uPlot.Axis[] {
  return [
    {
      stroke: colors.text,
      grid: { show: false },
      ticks: { stroke: colors.grid },
      font: colors.font,
      values: (_, splits, __, ___, step_s) => [
        ...formatTicks(
          splits.map((time_s) => time_s * 1_000),
          step_s * 1_000,
          zoneOf(latest().bucket_ms),
        ),
      ],
    },
    {
      ...(is_whole ? { incrs: WHOLE_STEPS } : {}),
      stroke: colors.text,
      grid: { stroke: colors.grid, width: 1 },
      ticks: { show: false },
      font: colors.font,
      size: (_, values) => 14 + 7 * Math.max(0, ...(values ?? []).map((value) => value.length)),
      values: (_, splits) => splits.map((value) => latest().format(value)),
    },
  ];
}

function seriesOf(
  label: string,
  color: string,
  { kind, has_buckets }: Pick<Plotted, 'kind' | 'has_buckets'>,
): uPlot.Series {
  return {
    label,
    stroke: color,
    width: kind === 'lines' ? 2 : 0,
    points: {
      show: false,
      filter: (self, place_in_data) => (kind === 'lines' ? alone(self.data[place_in_data]) : null),
    },
    ...(kind !== 'lines' && uPlot.paths.bars !== undefined
      ? {
          fill: color,
          paths: uPlot.paths.bars({
            size: [0.7, 40],
            radius: kind === 'stacked' ? 0 : 0.15,
            align: has_buckets ? 1 : 0,
          }),
        }
      : {}),
  };
}

/** Returns the shown times: the last one with all of its bucket, unless the chart is zoomed. */
function withLastBucket(plot: uPlot, low: number, high: number, bucket_ms = 0): [number, number] {
  return [low, high === plot.data[0].at(-1) ? high + bucket_ms / 1_000 : high];
}

function rangeFromZero(low: number | null, high: number | null): [number, number] {
  const top = Math.max(high ?? 0, 0);
  return [Math.min(low ?? 0, 0), top === 0 ? 1 : top * 1.08];
}

/** Returns the indexes of values without a neighbour, which are drawn as points because they have no line. */
function alone(values: uPlot.AlignedData[number] = []): number[] {
  const isThere = (index: number) => values[index] != null;
  return Array.from(values, (_, index) => index).filter(
    (index) => isThere(index) && !isThere(index - 1) && !isThere(index + 1),
  );
}

type Colours = ReturnType<typeof coloursOf>;

/** Returns the colours of the style sheet for a canvas, which has no custom properties. */
function coloursOf(place: HTMLElement, series: readonly ChartSeries[]) {
  const probe = document.createElement('span');
  place.append(probe);
  const resolved = (variable: string) => {
    probe.style.color = variable;
    return getComputedStyle(probe).color;
  };
  const text = resolved('var(--text-muted)');
  const grid = resolved('var(--line)');
  // Series are told apart by their colours alone, also where the reader forces those of everything else.
  probe.style.setProperty('forced-color-adjust', 'none');
  const of_series = series.map(({ color }, index) => resolved(variableOf(color ?? index + 1)));
  probe.remove();
  return { text, grid, font: `12px ${getComputedStyle(place).fontFamily}`, series: of_series };
}
