import { METRICS, type Metric, type MetricName } from './metrics.ts';
import type { Prediction } from './predictions.ts';
import type { Random } from './random.ts';

/** A value with its 95% confidence interval. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

export type Estimates = Readonly<Record<MetricName, Estimate>>;

/** The share of the samples beyond each end of the interval. */
const TAIL = 0.025;

/** Returns the value at a quantile of sorted numbers, interpolated between neighbours. */
export function quantile(sorted: readonly number[], at: number): number {
  const place = at * (sorted.length - 1);
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/**
 * Returns each statistic of the predictions with its percentile bootstrap interval over `resamples` draws of
 * their records.
 */
export function bootstrap<Name extends string>(
  predictions: readonly Prediction[],
  statistics: Readonly<Record<Name, Metric>>,
  options: { readonly resamples: number; readonly random: Random },
): ReadonlyMap<Name, Estimate> {
  const names = Object.keys(statistics).filter((name): name is Name => name in statistics);
  const samples = new Map(names.map((name) => [name, [] as number[]]));
  // The predictions about one record are dependent, and must be drawn together.
  const records = [...Map.groupBy(predictions, ({ record }) => record).values()];
  for (let draw = 0; draw < options.resamples; draw += 1) {
    const drawn = records.flatMap(() => records[Math.floor(options.random() * records.length)] ?? []);
    for (const name of names) samples.get(name)?.push(statistics[name](drawn));
  }
  return new Map(
    names.map((name) => {
      const sorted = (samples.get(name) ?? []).filter(Number.isFinite).sort((a, b) => a - b);
      return [
        name,
        {
          value: statistics[name](predictions),
          low: quantile(sorted, TAIL),
          high: quantile(sorted, 1 - TAIL),
        },
      ];
    }),
  );
}

/** Returns every reported metric of the predictions with its interval. */
export function estimateMetrics(
  predictions: readonly Prediction[],
  options: { readonly resamples: number; readonly random: Random },
): Estimates {
  const estimates = bootstrap(predictions, METRICS, options);
  const of = (name: MetricName): Estimate =>
    estimates.get(name) ?? { value: Number.NaN, low: Number.NaN, high: Number.NaN };
  return {
    accuracy: of('accuracy'),
    balanced_accuracy: of('balanced_accuracy'),
    chance: of('chance'),
    brier: of('brier'),
    negative_log_likelihood: of('negative_log_likelihood'),
    expected_calibration_error: of('expected_calibration_error'),
    automatic_share: of('automatic_share'),
    mean_absolute_level_error: of('mean_absolute_level_error'),
  };
}
