/** What was reached with so many labels. */
export interface CurvePoint {
  readonly labels: number;
  readonly accuracy: number;
}

/**
 * How much accuracy `more` labels would likely add. What is lacking is taken to shrink with the square root of the
 * labels, as it does for an estimate by random samples. `served` is the accuracy of what is served now, where that is
 * not on the curve. Never negative: nobody has to take a correction that got worse.
 */
export function labelsGain(
  points: readonly CurvePoint[],
  {
    labels,
    more,
    served,
  }: { readonly labels: number; readonly more: number; readonly served: number | null },
): number {
  const { level, slope } = line(
    points.map((point) => ({ x: 1 / Math.sqrt(point.labels), y: point.accuracy })),
  );
  const reached = (count: number) => Math.min(1, level + slope / Math.sqrt(count));
  return Math.max(0, reached(labels + more) - (served ?? reached(labels)));
}

/** The straight line of the least squares. A curve that falls with more labels is noise, and taken to be flat. */
function line(points: readonly { readonly x: number; readonly y: number }[]): {
  readonly level: number;
  readonly slope: number;
} {
  const mean_x = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const mean_y = points.reduce((sum, { y }) => sum + y, 0) / points.length;
  const spread = points.reduce((sum, { x }) => sum + (x - mean_x) ** 2, 0);
  const product = points.reduce((sum, { x, y }) => sum + (x - mean_x) * (y - mean_y), 0);
  const slope = spread === 0 ? 0 : Math.min(0, product / spread);
  return { level: mean_y - slope * mean_x, slope };
}
