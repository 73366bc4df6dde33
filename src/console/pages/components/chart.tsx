import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { type ChartKind, type ChartSeries, variableOf } from './chart-series.ts';
import { ChartTable } from './chart-table.tsx';
import { exactTime, type Span } from './chart-time.ts';
import { usePlot } from './use-plot.ts';

interface ChartProps {
  readonly title: string;
  readonly kind?: ChartKind;
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
  readonly onZoom?: ((span: Span | null) => void) | undefined;
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
  const [shows_table, setShowsTable] = useState(false);
  const shown = { times_ms, series, format, bucket_ms, onZoom };
  const { place, cursor, is_zoomed, resetZoom } = usePlot({
    ...shown,
    kind,
    height_px,
    is_hidden: shows_table,
  });
  const id = useId();
  return (
    <figure class="chart panel" aria-labelledby={`${id}-title`}>
      <div class="chart-head">
        <figcaption id={`${id}-title`}>{title}</figcaption>
        <div class="chart-actions">
          {controls}
          {is_zoomed && (
            <Button kind="quiet" size="small" onClick={resetZoom}>
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
      <Legend {...shown} cursor={cursor} />
      {shows_table ? (
        <ChartTable title={title} {...shown} />
      ) : (
        <>
          <p class="visually-hidden">{summaryOf(series, format)}</p>
          <div ref={place} class="chart-place" aria-hidden="true" />
        </>
      )}
    </figure>
  );
}

/** The names of the series, with their values at the time under the cursor. */
function Legend({
  times_ms,
  series,
  format,
  bucket_ms,
  cursor,
}: Pick<ChartProps, 'times_ms' | 'series' | 'format' | 'bucket_ms'> & { readonly cursor: number | null }) {
  return (
    <div class="chart-legend">
      {series.map(({ label, values, color }, index) => {
        const value = values[cursor ?? -1];
        return (
          <span key={label}>
            <span class="swatch" style={{ background: variableOf(color ?? index + 1) }} aria-hidden="true" />
            {label}
            {value != null && <strong class="number"> {format(value)}</strong>}
          </span>
        );
      })}
      <span class="chart-time">{cursor === null ? '' : exactTime(times_ms[cursor], bucket_ms)}</span>
    </div>
  );
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
