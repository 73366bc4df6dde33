/**
 * Measures the cost of the service's scheduling: wall and CPU time of 32 scheduled requests ÷ of 32 requests given to
 * the engine at once. Each request has five questions. It reports medians for one organization and for 16.
 *
 *   bun bench/engine-scheduler.ts [rounds, default 5]
 */
import { type DecisionInput, openEngine } from '../native/engine.ts';
import { ModelScheduler, QUEUE_LIMIT } from '../src/scheduling/model-scheduler.ts';
import { systemClock } from '../src/time/clock.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 5);
const BATCH = 32;
const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const scheduler = new ModelScheduler(QUEUE_LIMIT, systemClock);
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

async function scheduled(scope: string, input: DecisionInput): Promise<void> {
  const plan = await engine.plan(input);
  using slot = await scheduler.take(scope);
  await engine.evaluate(plan, { scope, schedulePlan: slot.run });
}

const times = await alternating(rounds, {
  one_scheduled: () => batch(scheduled, 1),
  one_at_once: () => batch(atOnce, 1),
  many_scheduled: () => batch(scheduled, 16),
  many_at_once: () => batch(atOnce, 16),
});
await engine.close();
report({
  bench: 'engine-scheduler',
  threads: THREADS,
  batch: BATCH,
  one_organization_cpu: rounded(times('one_scheduled').cpu_ms / times('one_at_once').cpu_ms),
  many_organizations_cpu: rounded(times('many_scheduled').cpu_ms / times('many_at_once').cpu_ms),
  one_organization: rounded(times('one_scheduled').wall_ms / times('one_at_once').wall_ms),
  many_organizations: rounded(times('many_scheduled').wall_ms / times('many_at_once').wall_ms),
  batch_ms: rounded(times('one_scheduled').wall_ms),
});
process.exit(0);
