import type { UsageGroup } from '../store/usage-reader.ts';
import type { UsageRow } from '../store/usage-row.ts';

/** The groups that a chart can tell apart; the others are one. */
export const GROUPS_MAX = 5;

/** The sums of some requests. */
interface Addend extends Pick<UsageRow, 'input_tokens' | 'cost_micros'> {
  readonly requests: number;
}

interface Sums {
  readonly requests: number[];
  readonly input_tokens: number[];
  readonly cost_micros: number[];
}

/** Running sums of requests by bucket and by the value of one column. */
export class UsageGroups {
  readonly #groups = new Map<string, Sums>();

  constructor(private readonly buckets: number) {}

  /** Adds requests of one value in the bucket of that index. */
  add(value: string, bucket: number, { requests, input_tokens, cost_micros }: Addend): void {
    const group = this.#groups.get(value) ?? this.#empty();
    this.#groups.set(value, group);
    addAt(group.requests, bucket, requests);
    addAt(group.input_tokens, bucket, input_tokens);
    addAt(group.cost_micros, bucket, cost_micros);
  }

  /** Returns the groups with most requests, largest first, and the sums of all others. */
  largest(): UsageGroup[] {
    const ordered = [...this.#groups]
      .map(([value, sums]) => ({ value, ...sums, all: sums.requests.reduce((sum, one) => sum + one, 0) }))
      .sort((left, right) => right.all - left.all || (left.value < right.value ? -1 : 1))
      .map(({ value, requests, input_tokens, cost_micros }) => ({
        value,
        requests,
        input_tokens,
        cost_micros,
      }));
    const others = ordered.slice(GROUPS_MAX);
    if (others.length === 0) return ordered;
    const rest = this.#empty();
    for (const other of others) {
      for (const column of ['requests', 'input_tokens', 'cost_micros'] as const) {
        for (const [bucket, value] of other[column].entries()) addAt(rest[column], bucket, value);
      }
    }
    return [...ordered.slice(0, GROUPS_MAX), { value: null, ...rest }];
  }

  #empty(): Sums {
    const zeros = () => Array.from({ length: this.buckets }, () => 0);
    return { requests: zeros(), input_tokens: zeros(), cost_micros: zeros() };
  }
}

function addAt(sums: number[], index: number, addend: number): void {
  const sum = sums[index];
  if (sum !== undefined) sums[index] = sum + addend;
}
