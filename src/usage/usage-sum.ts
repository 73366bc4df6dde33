import type { UsageRow } from './usage-row.ts';

/** Model time by nearest rank: that share of the requests took no longer. */
export interface LatencyPercentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** What requests add up to. */
export interface UsageTotals {
  readonly requests: number;
  /** How many of them had each HTTP status, by status. */
  readonly statuses: readonly { readonly status: number; readonly requests: number }[];
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost_micros: number;
  /** Of the requests that were not rolled up; null when all were, or there are none. */
  readonly latency_ms: LatencyPercentiles | null;
  /** How many of the requests are there in daily totals only, which have no latencies. */
  readonly rolled_up_requests: number;
}

/** What one row, or the total of one day and status, adds. */
type Summand = Pick<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros'>;

/** Adds requests up. */
export class UsageSum {
  #questions = 0;
  #input_tokens = 0;
  #cost_micros = 0;
  #rolled_up_requests = 0;
  readonly #statuses = new Map<number, number>();
  readonly #latencies_ms: number[] = [];

  /** Adds one request. */
  add(row: Summand & Pick<UsageRow, 'latency_ms'>): void {
    this.#take(row, 1);
    this.#latencies_ms.push(row.latency_ms);
  }

  /** Adds requests of one status, of which the latencies are known to whoever added them up. */
  addCounted(total: Summand & { readonly requests: number }): void {
    this.#take(total, total.requests);
  }

  /** Adds requests of one status that were rolled up. */
  addRolledUp(total: Summand & { readonly requests: number }): void {
    this.#take(total, total.requests);
    this.#rolled_up_requests += total.requests;
  }

  /** Adds everything that another sum has. */
  addSum(other: UsageSum): void {
    this.#questions += other.#questions;
    this.#input_tokens += other.#input_tokens;
    this.#cost_micros += other.#cost_micros;
    this.#rolled_up_requests += other.#rolled_up_requests;
    for (const [status, requests] of other.#statuses) this.#count(status, requests);
    for (const latency_ms of other.#latencies_ms) this.#latencies_ms.push(latency_ms);
  }

  totals(): UsageTotals {
    const statuses = [...this.#statuses]
      .map(([status, requests]) => ({ status, requests }))
      .sort((left, right) => left.status - right.status);
    return {
      requests: statuses.reduce((sum, { requests }) => sum + requests, 0),
      statuses,
      questions: this.#questions,
      input_tokens: this.#input_tokens,
      cost_micros: this.#cost_micros,
      latency_ms: percentilesOf(this.#latencies_ms),
      rolled_up_requests: this.#rolled_up_requests,
    };
  }

  #take({ status, questions, input_tokens, cost_micros }: Summand, requests: number): void {
    this.#questions += questions;
    this.#input_tokens += input_tokens;
    this.#cost_micros += cost_micros;
    this.#count(status, requests);
  }

  #count(status: number, requests: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + requests);
  }
}

function percentilesOf(latencies_ms: readonly number[]): LatencyPercentiles | null {
  if (latencies_ms.length === 0) return null;
  const sorted = Float64Array.from(latencies_ms).sort();
  const at = (percent: number) => sorted[Math.ceil((percent * sorted.length) / 100) - 1] ?? 0;
  return { p50: at(50), p90: at(90), p99: at(99) };
}
