/**
 * Measures the effect of one organization's load on another's small request.
 *
 *   bun bench/engine-fairness.ts [requests, default 50]
 *
 * It times requests of five questions about 300 tokens, one after the other, under three loads. Alone; while another
 * organization always has 60 requests of 2,500 words at the model; while it has two of 16K tokens. The bound for the
 * second is three times the 99th percentile alone, plus the longest single pass. A pass is the model's time for one of
 * the 60.
 */
import { type DecisionInput, openEngine } from '../native/engine.ts';
import { ModelScheduler, QUEUE_LIMIT } from '../src/scheduling/model-scheduler.ts';
import { systemClock } from '../src/time/clock.ts';
import { fiveQuestions, THREADS } from './support/engine.ts';
import { quantile, report, rounded } from './support/statistics.ts';

const requests = Number(process.argv[2] ?? 50);
const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const scheduler = new ModelScheduler(QUEUE_LIMIT, systemClock);
const small = fiveQuestions();
/** 2,500 words. */
const long: DecisionInput = { ...small, state: 'The parcel is late and nobody calls. '.repeat(357) };
const largest: DecisionInput = { ...small, state: 'The parcel is late and nobody calls. '.repeat(1990) };

/** The model's longest time for a plan, by organization. */
const longest_pass_ms = new Map<string, number>();
async function timed<Result>(organization: string, work: () => Promise<Result>): Promise<Result> {
  const before = performance.now();
  const result = await work();
  const duration_ms = performance.now() - before;
  longest_pass_ms.set(organization, Math.max(duration_ms, longest_pass_ms.get(organization) ?? 0));
  return result;
}

let records = 0;
/** Answers a request about a new record as the service does. Returns the milliseconds. */
async function ask(organization: string, input: DecisionInput, signal?: AbortSignal): Promise<number> {
  const before = performance.now();
  const plan = await engine.plan(input);
  const scope = `${organization} ${records++}`;
  const options = signal === undefined ? { scope } : { scope, signal };
  using slot = await scheduler.take(organization);
  await engine.evaluate(plan, {
    ...options,
    schedulePlan: (plan, work, given_up) => slot.run(plan, () => timed(organization, work), given_up),
  });
  return performance.now() - before;
}

async function times(): Promise<readonly number[]> {
  const latencies_ms: number[] = [];
  for (let request = 0; request < requests; request++) latencies_ms.push(await ask('small', small));
  return latencies_ms;
}

/** Returns the times of the small request while another organization has `count` requests at the model. */
async function beside(count: number, input: DecisionInput) {
  const measured = new AbortController();
  let answered = 0;
  const load = Promise.allSettled(
    Array.from({ length: count }, async () => {
      while (!measured.signal.aborted) {
        await ask('load', input, measured.signal);
        answered += 1;
      }
    }),
  );
  await ask('small', small);
  const latencies_ms = await times();
  measured.abort();
  await load;
  return { latencies_ms, answered };
}

function percentiles(latencies_ms: readonly number[]) {
  return { median_ms: rounded(quantile(latencies_ms, 0.5)), p99_ms: rounded(quantile(latencies_ms, 0.99)) };
}

await ask('small', small);
const alone = await times();
const beside_long = await beside(60, long);
const pass_ms = longest_pass_ms.get('load') ?? Number.NaN;
const alone_again = await times();
const beside_largest = await beside(2, largest);
const alone_p99_ms = quantile([...alone, ...alone_again], 0.99);
report({
  bench: 'engine-fairness',
  threads: THREADS,
  requests,
  long_tokens: (await engine.plan(long)).input_tokens,
  largest_tokens: (await engine.plan(largest)).input_tokens,
  alone: percentiles([...alone, ...alone_again]),
  beside_60_long: { ...percentiles(beside_long.latencies_ms), long_answered: beside_long.answered },
  beside_2_largest: {
    ...percentiles(beside_largest.latencies_ms),
    largest_answered: beside_largest.answered,
  },
  longest_pass_ms: rounded(pass_ms),
  bound_ms: rounded(3 * alone_p99_ms + pass_ms),
  p99_of_bound: rounded(quantile(beside_long.latencies_ms, 0.99) / (3 * alone_p99_ms + pass_ms)),
});

await engine.close();
process.exit(0);
