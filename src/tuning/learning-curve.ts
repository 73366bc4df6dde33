/** The accuracy with that many labels. */
export interface CurvePoint {
  readonly labels: number;
  readonly accuracy: number;
}

/**
 * Returns the likely gain in accuracy of `more` labels. The error is assumed to shrink with the square root
 * of the labels, as for an estimate by random samples. `served` is the accuracy of the served answers, where
 * that is not on the curve. Never negative, because a worse correction need not be used.
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

/** Returns the line of least squares. A curve that falls with more labels is noise, and counts as flat. */
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
