import type { LatencyPercentiles, UsageTotals } from '../store/usage-reader.ts';
import type { UsageRow } from '../store/usage-row.ts';

/** The addends of one row, or of the total of one day and status. */
type Summand = Pick<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros'>;

/** A running sum of requests. */
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
    // Others may never have asked the model, and have 0 ms then.
    if (row.status === 200) this.#latencies_ms.push(row.latency_ms);
  }

  /** Adds requests of one status; the caller has their latencies. */
  addCounted(total: Summand & { readonly requests: number }): void {
    this.#take(total, total.requests);
  }

  /** Adds rolled-up requests of one status. */
  addRolledUp(total: Summand & { readonly requests: number }): void {
    this.#take(total, total.requests);
    this.#rolled_up_requests += total.requests;
  }

  /** Adds another sum. */
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
