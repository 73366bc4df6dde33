import { Button } from './button.tsx';
import type { ChartSeries } from './chart-series.ts';
import { exactTime, type Span } from './chart-time.ts';

interface ChartTableProps {
  readonly title: string;
  readonly times_ms: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly bucket_ms: number | undefined;
  readonly onZoom: ((span: Span) => void) | undefined;
}

/** The values of a chart as a table, whose times zoom to themselves. */
export function ChartTable({ title, times_ms, series, format, bucket_ms, onZoom }: ChartTableProps) {
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
