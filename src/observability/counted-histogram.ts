import { Histogram, type HistogramConfiguration } from 'prom-client';

/** Observations that were counted elsewhere. */
export interface CountedSizes<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  /** The counts up to each bound and above the one before; the last is for all above the last bound. */
  readonly by_size: readonly number[];
  readonly sum: number;
}

type Options<Label extends string> = Pick<
  HistogramConfiguration<Label>,
  'name' | 'help' | 'labelNames' | 'registers'
> & { readonly buckets: number[] };

/** A histogram that is counted elsewhere, and read when the text is made. */
export class CountedHistogram<Label extends string> extends Histogram<Label> {
  readonly #options: Options<Label>;
  readonly #look: () => readonly CountedSizes<Label>[];

  constructor(options: Options<Label>, look: () => readonly CountedSizes<Label>[]) {
    super(options);
    this.#options = options;
    this.#look = look;
  }

  /** Returns the values of a histogram for prom-client's registry. */
  getForPromString() {
    const { name, help } = this.#options;
    const values = this.#look().flatMap((sizes) => this.#valuesOf(sizes));
    return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values });
  }

  #valuesOf({ labels, by_size, sum }: CountedSizes<Label>) {
    const { name, buckets } = this.#options;
    let count = 0;
    const series = by_size.map((more, index) => {
      count += more;
      return {
        metricName: `${name}_bucket`,
        labels: { le: buckets[index] ?? '+Inf', ...labels },
        value: count,
      };
    });
    return [
      ...series,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}
