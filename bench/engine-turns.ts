/**
 * Measures the cost of the service's scheduling: wall and CPU time of 32 scheduled requests ÷ of 32 requests given to
 * the engine at once. Each request has five questions. It reports medians for one organization and for 16.
 *
 *   bun bench/engine-turns.ts [rounds, default 5]
 */
import { type DecisionInput, openEngine } from '../native/engine.ts';
import { systemClock } from '../src/clock.ts';
import { ModelTurns, QUEUE_LIMIT } from '../src/limits/model-turns.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 5);
const BATCH = 32;
const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const turns = new ModelTurns(QUEUE_LIMIT, systemClock);
const small = fiveQuestions();

let records = 0;
/** Answers a batch of requests at once. Every record is new. */
async function batch(
  answer: (organization: string, input: DecisionInput) => Promise<unknown>,
  organizations: number,
): Promise<void> {
  const inputs = Array.from({ length: BATCH }, () => ({ ...small, state: `${records++} ${small.state}` }));
  await Promise.all(inputs.map((input, index) => answer(`organization ${index % organizations}`, input)));
}

async function atOnce(scope: string, input: DecisionInput): Promise<void> {
  await engine.evaluate(await engine.plan(input), { scope });
}

async function inTheirTurns(scope: string, input: DecisionInput): Promise<void> {
  const plan = await engine.plan(input);
  using place = await turns.take(scope);
  await engine.evaluate(plan, { scope, takeTurn: place.run });
}

const times = await alternating(rounds, {
  one_in_turns: () => batch(inTheirTurns, 1),
  one_at_once: () => batch(atOnce, 1),
  many_in_turns: () => batch(inTheirTurns, 16),
  many_at_once: () => batch(atOnce, 16),
});
await engine.close();
report({
  bench: 'engine-turns',
  threads: THREADS,
  batch: BATCH,
  one_organization_cpu: rounded(times('one_in_turns').cpu_ms / times('one_at_once').cpu_ms),
  many_organizations_cpu: rounded(times('many_in_turns').cpu_ms / times('many_at_once').cpu_ms),
  one_organization: rounded(times('one_in_turns').wall_ms / times('one_at_once').wall_ms),
  many_organizations: rounded(times('many_in_turns').wall_ms / times('many_at_once').wall_ms),
  batch_ms: rounded(times('one_in_turns').wall_ms),
});
process.exit(0);
