/**
 * Time of a request of five questions about 300 tokens, one after the other, alone and while records of 16K tokens are
 * being read: median and 99th percentile.
 *
 *   bun bench/engine-fairness.ts [requests, default 100]
 */
import { openEngine } from '../native/open.ts';
import type { DecisionInput } from '../native/plan/profile.ts';
import { answer, fiveQuestions, THREADS } from './support/engine.ts';
import { quantile, report, rounded } from './support/statistics.ts';

const requests = Number(process.argv[2] ?? 100);
const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const small = fiveQuestions();
const large: DecisionInput = {
  ...small,
  state: 'The parcel is late and nobody calls. '.repeat(1990),
};

async function times(): Promise<number[]> {
  const latencies: number[] = [];
  for (let request = 0; request < requests; request++) {
    const before = performance.now();
    await answer(engine, small);
    latencies.push(performance.now() - before);
  }
  return latencies;
}

await answer(engine, small);
const alone = await times();
let is_measuring = true;
let large_requests = 0;
const { input_tokens: large_tokens } = await engine.plan(large);
const load = Promise.allSettled(
  [0, 1].map(async () => {
    while (is_measuring) {
      await answer(engine, large);
      large_requests += 1;
    }
  }),
);
const beside = await times();
is_measuring = false;
await engine.close();
await load;
report({
  bench: 'engine-fairness',
  threads: THREADS,
  requests,
  large_tokens,
  large_requests,
  alone_median_ms: rounded(quantile(alone, 0.5)),
  alone_p99_ms: rounded(quantile(alone, 0.99)),
  beside_large_median_ms: rounded(quantile(beside, 0.5)),
  beside_large_p99_ms: rounded(quantile(beside, 0.99)),
});
process.exit(0);
