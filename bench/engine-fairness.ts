/**
 * What one organization's load does to another's small request, and what turns cost.
 *
 *   bun bench/engine-fairness.ts [requests, default 50]
 *
 * - The time of a request of five questions about 300 tokens, one after the other: alone, while another organization
 *   has 60 requests of 2,500 words at the model all the time, and while it has two of 16K tokens. The bound is three
 *   times the 99th percentile alone, and the longest single pass: one of the 60 requests with nothing beside it.
 * - The wall time of 64 requests at once through turns ÷ given to the engine all at once, of one organization and of
 *   16, in the median of five rounds in turns.
 */
import { openEngine } from '../native/open.ts';
import type { DecisionInput } from '../native/plan/profile.ts';
import { systemClock } from '../src/clock.ts';
import { ModelTurns } from '../src/limits/model-turns.ts';
import { fiveQuestions, inTurns, THREADS } from './support/engine.ts';
import { quantile, report, rounded } from './support/statistics.ts';

const requests = Number(process.argv[2] ?? 50);
const QUEUE_LIMIT = 512;
const ROUNDS = 5;
const BATCH = 64;
const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const turns = new ModelTurns(QUEUE_LIMIT, systemClock);
const small = fiveQuestions();
const { state } = small;
/** 2,500 words. */
const long: DecisionInput = { ...small, state: 'The parcel is late and nobody calls. '.repeat(357) };
const largest: DecisionInput = { ...small, state: 'The parcel is late and nobody calls. '.repeat(1990) };

let records = 0;
/** Answers a request as the service does, about a record that nobody has asked about; returns the milliseconds. */
async function ask(organization: string, input: DecisionInput, signal?: AbortSignal): Promise<number> {
  const before = performance.now();
  const plan = await engine.plan(input);
  const scope = `${organization} ${records++}`;
  const options = signal === undefined ? { scope } : { scope, signal };
  await turns.admit(organization, ({ run }) => engine.evaluate(input, plan, { ...options, takeTurn: run }));
  return performance.now() - before;
}

async function times(): Promise<readonly number[]> {
  const latencies_ms: number[] = [];
  for (let request = 0; request < requests; request++) latencies_ms.push(await ask('small', small));
  return latencies_ms;
}

/** The times of the small request while another organization has `count` requests at the model. */
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
const passes_ms: number[] = [];
for (let pass = 0; pass < 5; pass++) passes_ms.push(await ask('load', long));
const beside_long = await beside(60, long);
const alone_again = await times();
const beside_largest = await beside(2, largest);
const pass_ms = Math.max(...passes_ms);
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

/** Answers a batch of small requests at once; every record is new. */
function batch(
  answer: (organization: string, input: DecisionInput) => Promise<unknown>,
  organizations: number,
) {
  const inputs = Array.from({ length: BATCH }, () => ({ ...small, state: `${records++} ${state}` }));
  return Promise.all(inputs.map((input, index) => answer(`organization ${index % organizations}`, input)));
}
async function askAtOnce(organization: string, input: DecisionInput): Promise<void> {
  await engine.evaluate(input, await engine.plan(input), { scope: organization });
}
const walls = await inTurns(ROUNDS, {
  one_in_turns: () => batch(ask, 1),
  one_at_once: () => batch(askAtOnce, 1),
  many_in_turns: () => batch(ask, 16),
  many_at_once: () => batch(askAtOnce, 16),
});
report({
  bench: 'engine-fairness, price of turns',
  threads: THREADS,
  batch: BATCH,
  one_organization: rounded(walls('one_in_turns').wall_ms / walls('one_at_once').wall_ms),
  many_organizations: rounded(walls('many_in_turns').wall_ms / walls('many_at_once').wall_ms),
  batch_ms: rounded(walls('one_in_turns').wall_ms),
});
await engine.close();
process.exit(0);
