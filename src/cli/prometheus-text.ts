/** One value of Prometheus' text format. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

type Labels = Readonly<Record<string, string>>;

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The values of one reading of metrics. */
export class Reading {
  constructor(private readonly samples: ReadonlyMap<string, readonly Sample[]>) {}

  /** Parses Prometheus' text format, without lines that have no value. */
  static of(text: string): Reading {
    const samples = new Map<string, Sample[]>();
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
      if (name === undefined || value === undefined) continue;
      const sample = { labels: labelsOf(labels), value: Number(value.replace('Inf', 'Infinity')) };
      const of_name = samples.get(name);
      if (of_name === undefined) samples.set(name, [sample]);
      else of_name.push(sample);
    }
    return new Reading(samples);
  }

  has(name: string): boolean {
    return this.samples.has(name);
  }

  /** Returns the sum of a name's values with these labels; 0 for none. */
  sum(name: string, labels: Labels = {}): number {
    return this.all(name)
      .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** Returns every value of a name. */
  all(name: string): readonly Sample[] {
    return this.samples.get(name) ?? [];
  }

  /** Returns the sums of a name's values by one of its labels. */
  by(name: string, label: string): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const { labels, value } of this.all(name)) {
      const key = labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
  }
}

/** The reading before the first request. */
export const NOTHING_YET = new Reading(new Map());

/** Returns the growth of a counter; from 0 if the service restarted in between. */
export function grown(name: string, before: Reading, now: Reading, labels: Labels = {}): number {
  const [from, to] = [before.sum(name, labels), now.sum(name, labels)];
  return to >= from ? to - from : to;
}

/**
 * Returns a quantile of the values that a histogram counted between two readings; null for none. It is
 * estimated as by Prometheus' `histogram_quantile`.
 */
export function quantileOf(name: string, share: number, before: Reading, now: Reading): number | null {
  const buckets = [...now.by(`${name}_bucket`, 'le').keys()]
    .map((le) => ({ le: Number(le.replace('+Inf', 'Infinity')), label: le }))
    .sort((left, right) => left.le - right.le)
    .map(({ le, label }) => ({ le, count: grown(`${name}_bucket`, before, now, { le: label }) }));
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) return null;
  const rank = share * total;
  let lower = { le: 0, count: 0 };
  for (const bucket of buckets) {
    if (bucket.count >= rank) {
      if (bucket.le === Number.POSITIVE_INFINITY) return lower.le;
      const part = (rank - lower.count) / Math.max(1, bucket.count - lower.count);
      return lower.le + (bucket.le - lower.le) * part;
    }
    lower = bucket;
  }
  return lower.le;
}

function labelsOf(text: string): Labels {
  return Object.fromEntries(
    [...text.matchAll(LABEL)].map(([, name = '', value = '']) => [name, unescaped(value)]),
  );
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}
