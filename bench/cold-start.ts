/**
 * Measures a model's memory while it plans without its weights, loaded, and unloaded again. Measures the times to open
 * the planner, to load the weights, and to plan the five questions while cold.
 *
 *   bun bench/cold-start.ts [cycles, default 5]
 */
import { openPlanner } from '../native/engine.ts';
import { answer, fiveQuestions, THREADS } from './support/engine.ts';
import { median, report, rounded } from './support/statistics.ts';

const cycles = Number(process.argv[2] ?? 5);

function resident_mb(): number {
  Bun.gc(true);
  return process.memoryUsage().rss / 1e6;
}

async function timed<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly ms: number }> {
  const before = performance.now();
  const result = await work();
  return { result, ms: performance.now() - before };
}

const before_mb = resident_mb();
const { result: planner, ms: open_planner_ms } = await timed(() =>
  openPlanner({ gpu: false, threads: THREADS }),
);
const planner_mb = resident_mb() - before_mb;

const load: number[] = [];
const loaded: number[] = [];
const unloaded: number[] = [];
const plan: number[] = [];
for (let cycle = 0; cycle < cycles; cycle++) {
  const { result: engine, ms } = await timed(() => planner.openEngine());
  load.push(ms);
  await answer(engine, fiveQuestions());
  loaded.push(resident_mb() - before_mb);
  await engine.close();
  unloaded.push(resident_mb() - before_mb);
  plan.push((await timed(() => planner.plan(fiveQuestions()))).ms);
}
report({
  bench: 'cold-start',
  cycles,
  planner_mb: rounded(planner_mb),
  loaded_mb: rounded(median(loaded)),
  unloaded_mb: rounded(median(unloaded)),
  open_planner_ms: rounded(open_planner_ms),
  load_ms: rounded(median(load)),
  plan_cold_ms: rounded(median(plan)),
});
await planner.close();
