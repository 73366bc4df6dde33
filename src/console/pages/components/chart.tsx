import { useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { DAY_MS } from '../../../time/clock.ts';
import { formatExact, formatTicks } from '../format.ts';
import { isDark } from '../theme.ts';
import { chosenZone, time_zone } from '../time-zone.ts';
import { Button } from './button.tsx';

/** The steps of an axis of whole numbers: there is no half of a request. */
const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

export type ChartColor = 1 | 2 | 3 | 4 | 5 | 'danger' | 'muted';

export interface ChartSeries {
  readonly label: string;
  /** One value for each time; null for none. */
  readonly values: readonly (number | null)[];
  /** A colour of the palette; by default that of the series' position. */
  readonly color?: ChartColor;
}

interface ChartProps {
  readonly title: string;
  /** `stacked` has bars whose series add up; the last one is at the bottom. */
  readonly kind?: 'lines' | 'bars' | 'stacked';
  readonly times_ms: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly height_px?: number;
  /**
   * The length of each time. With it bars begin at their times, and the table zooms to a row's time. Whole
   * days are those of UTC.
   */
  readonly bucket_ms?: number | undefined;
  /** Called with the span that was dragged over; null when it was reset. */
  readonly onZoom?: ((span: { readonly from_ms: number; readonly to_ms: number } | null) => void) | undefined;
  /** The choices of what the chart shows, in its head. */
  readonly controls?: ComponentChildren;
}

/**
 * A chart of values over time. Dragging zooms in, double click and the button reset it. The same data is also
 * a table, one click away, and a sentence for screen readers.
 */
export function Chart({
  title,
  kind = 'lines',
  times_ms,
  series,
  format,
  height_px = 200,
  bucket_ms,
  onZoom,
  controls,
}: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const zoomed = useRef(onZoom);
  zoomed.current = onZoom;
  const formatted = useRef(format);
  formatted.current = format;
  const bucket = useRef(bucket_ms);
  bucket.current = bucket_ms;
  const [is_zoomed, setZoomed] = useState(false);
  const [shows_table, setShowsTable] = useState(false);
  const [cursor, setCursor] = useState<number | null>(null);
  const [is_dark, setDark] = useState(isDark);
  useSignalEffect(() => setDark(isDark()));
  // Another zone has other labels.
  const zone = time_zone.value;
  const is_whole = series.every(({ values }) => values.every((value) => Number.isInteger(value ?? 0)));
  const id = useId();
  const shape = series.map(({ label, color }) => `${label}:${color}`).join();

  useEffect(() => {
    const element = place.current;
    if (element === null || shows_table) return;
    const colors = coloursOf(element, series);
    const drawn = new uPlot(
      {
        width: element.clientWidth,
        height: height_px,
        tzDate: (time_s) => {
          const date = new Date(time_s * 1_000);
          return zoneOf(bucket.current) === 'UTC' ? uPlot.tzDate(date, 'UTC') : date;
        },
        legend: { show: false },
        cursor: {
          y: false,
          drag: { x: true, y: false },
          points: { size: 7 },
        },
        scales: {
          x: { time: true, range: (self, low, high) => withLastBucket(self, low, high, bucket.current) },
          y: { range: (_, low, high) => rangeFromZero(low, high) },
        },
        axes: [
          {
            stroke: colors.text,
            grid: { show: false },
            ticks: { stroke: colors.grid },
            font: colors.font,
            values: (_, splits, __, ___, step_s) => [
              ...formatTicks(
                splits.map((time_s) => time_s * 1_000),
                step_s * 1_000,
                zoneOf(bucket.current),
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
            values: (_, splits) => splits.map((value) => formatted.current(value)),
          },
        ],
        series: [
          {},
          ...series.map((one, index): uPlot.Series => {
            const color = colors.series[index] ?? colors.text;
            return {
              label: one.label,
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
                      align: bucket_ms === undefined ? 0 : 1,
                    }),
                  }
                : {}),
            };
          }),
        ],
        hooks: {
          setCursor: [(self) => setCursor(self.cursor.idx ?? null)],
          setSelect: [
            (self) => {
              if (self.select.width <= 0) return;
              setZoomed(true);
              zoomed.current?.({
                from_ms: self.posToVal(self.select.left, 'x') * 1_000,
                to_ms: self.posToVal(self.select.left + self.select.width, 'x') * 1_000,
              });
            },
          ],
        },
      },
      dataOf(times_ms, series, kind),
      element,
    );
    plot.current = drawn;
    const resetZoom = () => {
      setZoomed(false);
      zoomed.current?.(null);
    };
    drawn.over.addEventListener('dblclick', resetZoom);
    const resizing = new ResizeObserver(() => {
      drawn.setSize({ width: element.clientWidth, height: height_px });
    });
    resizing.observe(element);
    return () => {
      resizing.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [kind, shape, height_px, is_dark, shows_table, zone, is_whole]);

  useEffect(() => {
    plot.current?.setData(dataOf(times_ms, series, kind));
    setZoomed(false);
  }, [times_ms, series]);

  return (
    <figure class="chart panel" aria-labelledby={`${id}-title`}>
      <div class="chart-head">
        <figcaption id={`${id}-title`}>{title}</figcaption>
        <div class="chart-actions">
          {controls}
          {is_zoomed && (
            <Button
              kind="quiet"
              size="small"
              onClick={() => {
                plot.current?.setData(dataOf(times_ms, series, kind));
                setZoomed(false);
                onZoom?.(null);
              }}
            >
              Reset zoom
            </Button>
          )}
          <Button
            kind="quiet"
            size="small"
            label={shows_table ? `Show ${title} as a chart` : `Show ${title} as a table`}
            onClick={() => setShowsTable(!shows_table)}
          >
            {shows_table ? 'Chart' : 'Table'}
          </Button>
        </div>
      </div>
      <div class="chart-legend">
        {series.map(({ label, values, color }, index) => {
          const value = values[cursor ?? -1];
          return (
            <span key={label}>
              <span
                class="swatch"
                style={{ background: variableOf(color ?? index + 1) }}
                aria-hidden="true"
              />
              {label}
              {value != null && <strong class="number"> {format(value)}</strong>}
            </span>
          );
        })}
        <span class="chart-time">{cursor === null ? '' : exactTime(times_ms[cursor], bucket_ms)}</span>
      </div>
      {shows_table ? (
        <ChartTable
          title={title}
          times_ms={times_ms}
          series={series}
          format={format}
          bucket_ms={bucket_ms}
          onZoom={onZoom}
        />
      ) : (
        <>
          <p class="visually-hidden">{summaryOf(series, format)}</p>
          <div ref={place} class="chart-place" aria-hidden="true" />
        </>
      )}
    </figure>
  );
}

function ChartTable({ title, times_ms, series, format, bucket_ms, onZoom }: Omit<ChartProps, 'kind'>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the keyboard's focus.
    <section class="chart-table" tabIndex={0} aria-label={`${title}, as a table`}>
      <table class="table plain">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ label }) => (
              <th key={label} scope="col" class="at-end">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times_ms.map((time_ms, index) => (
            <tr key={time_ms}>
              <th scope="row">
                {onZoom === undefined || bucket_ms === undefined ? (
                  exactTime(time_ms, bucket_ms)
                ) : (
                  <Button
                    kind="quiet"
                    size="small"
                    title="Zoom to this time"
                    onClick={() => onZoom({ from_ms: time_ms, to_ms: time_ms + bucket_ms })}
                  >
                    {exactTime(time_ms, bucket_ms)}
                  </Button>
                )}
              </th>
              {series.map(({ label, values }) => {
                const value = values[index];
                return (
                  <td key={label} class="at-end number">
                    {value == null ? '–' : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/**
 * Returns uPlot's data, with times in seconds. Of stacked series each has the sum of its own and all later values: uPlot
 * draws the later ones over the earlier ones.
 */
function dataOf(
  times_ms: readonly number[],
  series: readonly ChartSeries[],
  kind: NonNullable<ChartProps['kind']>,
): uPlot.AlignedData {
  const values = series.map((one) => [...one.values]);
  if (kind === 'stacked') {
    for (let place = values.length - 2; place >= 0; place -= 1) {
      values[place] = (values[place] ?? []).map(
        (value, index) => (value ?? 0) + (values[place + 1]?.[index] ?? 0),
      );
    }
  }
  return [times_ms.map((time_ms) => time_ms / 1_000), ...values];
}

function exactTime(time_ms: number | undefined, bucket_ms: number | undefined): string {
  return time_ms === undefined ? '' : formatExact(time_ms, zoneOf(bucket_ms));
}

/**
 * Returns the time zone for times of such buckets: UTC for whole days, otherwise undefined for the reader's.
 */
export function zoneOf(bucket_ms: number | undefined): 'UTC' | undefined {
  return bucket_ms !== undefined && bucket_ms % DAY_MS === 0 ? 'UTC' : chosenZone();
}

/** Returns the shown times: the last one with all of its bucket, unless the chart is zoomed. */
function withLastBucket(plot: uPlot, low: number, high: number, bucket_ms = 0): [number, number] {
  return [low, high === plot.data[0].at(-1) ? high + bucket_ms / 1_000 : high];
}

function rangeFromZero(low: number | null, high: number | null): [number, number] {
  const top = Math.max(high ?? 0, 0);
  return [Math.min(low ?? 0, 0), top === 0 ? 1 : top * 1.08];
}

function summaryOf(series: readonly ChartSeries[], format: (value: number) => string): string {
  return series
    .map(({ label, values }) => {
      const known = values.filter((value) => value !== null);
      if (known.length === 0) return `${label}: no values.`;
      const last = known.at(-1) ?? 0;
      return `${label}: lowest ${format(Math.min(...known))}, highest ${format(Math.max(...known))}, last ${format(last)}.`;
    })
    .join(' ');
}

/** Returns the indexes of values without a neighbour, which are drawn as points because they have no line. */
function alone(values: uPlot.AlignedData[number] = []): number[] {
  const isThere = (index: number) => values[index] != null;
  return Array.from(values, (_, index) => index).filter(
    (index) => isThere(index) && !isThere(index - 1) && !isThere(index + 1),
  );
}

/** Returns the colour of a series in the style sheet. The palette begins again after its last colour. */
function variableOf(color: number | 'danger' | 'muted'): string {
  if (color === 'danger') return 'var(--danger)';
  return color === 'muted' ? 'var(--line-strong)' : `var(--chart-${((color - 1) % 5) + 1})`;
}

/** Returns the colours of the style sheet for a canvas, which has no custom properties. */
function coloursOf(place: HTMLElement, series: readonly ChartSeries[]) {
  const probe = document.createElement('span');
  place.append(probe);
  const resolved = (variable: string) => {
    probe.style.color = variable;
    return getComputedStyle(probe).color;
  };
  const colours = {
    text: resolved('var(--text-muted)'),
    grid: resolved('var(--line)'),
    font: `12px ${getComputedStyle(place).fontFamily}`,
    series: series.map(({ color }, index) => resolved(variableOf(color ?? index + 1))),
  };
  probe.remove();
  return colours;
}
