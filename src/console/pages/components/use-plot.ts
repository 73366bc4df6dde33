import { useSignalEffect } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark } from '../theme.ts';
import { time_zone } from '../time-zone.ts';
import type { ChartKind, ChartSeries } from './chart-series.ts';
import type { Span } from './chart-time.ts';
import { plotOptions } from './plot-options.ts';

interface PlotProps {
  readonly kind: ChartKind;
  readonly times_ms: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly height_px: number;
  readonly bucket_ms: number | undefined;
  readonly onZoom: ((span: Span | null) => void) | undefined;
  /** True while there is no element to draw into. */
  readonly is_hidden: boolean;
}

/** Draws a chart into the element at `place`. It follows its data, its size, the theme and the time zone. */
export function usePlot(props: PlotProps) {
  const { kind, times_ms, series, height_px, onZoom, is_hidden } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [is_zoomed, setZoomed] = useState(false);
  /** The index of the time under the cursor; null for none. */
  const [cursor, setCursor] = useState<number | null>(null);
  const [is_dark, setDark] = useState(isDark);
  useSignalEffect(() => setDark(isDark()));
  // Another zone has other labels.
  const zone = time_zone.value;
  const is_whole = series.every(({ values }) => values.every((value) => Number.isInteger(value ?? 0)));
  const shape = series.map(({ label, color }) => `${label}:${color}`).join();

  useEffect(() => {
    const element = place.current;
    if (element === null || is_hidden) return;
    const zoom = (span: Span | null) => {
      setZoomed(span !== null);
      latest.current.onZoom?.(span);
    };
    const options = plotOptions(element, {
      kind,
      series,
      height_px,
      is_whole,
      has_buckets: props.bucket_ms !== undefined,
      latest: () => latest.current,
      onCursor: setCursor,
      onZoom: zoom,
    });
    const drawn = new uPlot(options, dataOf(times_ms, series, kind), element);
    plot.current = drawn;
    drawn.over.addEventListener('dblclick', () => zoom(null));
    const resizing = new ResizeObserver(() => {
      drawn.setSize({ width: element.clientWidth, height: height_px });
    });
    resizing.observe(element);
    return () => {
      resizing.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [kind, shape, height_px, is_dark, is_hidden, zone, is_whole]);

  /** Draws all of the data, at its whole length. */
  const drawAll = () => {
    plot.current?.setData(dataOf(times_ms, series, kind));
    setZoomed(false);
  };
  useEffect(drawAll, [times_ms, series]);

  return {
    place,
    cursor,
    is_zoomed,
    resetZoom: () => {
      drawAll();
      onZoom?.(null);
    },
  };
}

/**
 * Returns uPlot's data, with times in seconds. Of stacked series each has the sum of its own and all later values: uPlot
 * draws the later ones over the earlier ones.
 */
function dataOf(
  times_ms: readonly number[],
  series: readonly ChartSeries[],
  kind: ChartKind,
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
