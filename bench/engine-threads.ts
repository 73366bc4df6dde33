/**
 * Latency alone and requests a second under load, by the number of computing threads. The request has five questions
 * about a new record of 300 tokens. Under load eight of them are always at the model. What `--threads auto` takes on a
 * busy machine is marked; it takes all cores on an idle one.
 *
 *   bun bench/engine-threads.ts [threads, default 1 to all cores by doubling] [rounds, default 5]
 *
 * The engines of all numbers are open at once and take turns. Each has its own weights and cells in memory, about
 * 700 MB.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { computingThreads, openEngine } from '../native/engine.ts';
import { alternating, answer, fiveQuestions } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const AT_ONCE = 8;
const MS_PER_S = 1_000;

/** Returns 1, 2, 4, … below the number of cores, and what is left by one core, and all. */
function counts(): readonly number[] {
  const cores = availableParallelism();
  const powers = Array.from({ length: Math.floor(Math.log2(cores)) + 1 }, (_, power) => 2 ** power);
  return [...new Set([...powers, computingThreads(undefined).fewest, cores])].sort(
    (one, other) => one - other,
  );
}

const { positionals } = parseArgs({ allowPositionals: true });
const [listed, rounds = '5'] = positionals;
const input = fiveQuestions();
const engines = await Promise.all(
  (listed === undefined ? counts() : listed.split(',').map(Number)).map(async (threads) => ({
    threads,
    engine: await openEngine({ evaluator: 'addon', gpu: false, threads }),
  })),
);
const contenders = Object.fromEntries(
  engines.flatMap(({ threads, engine }) => [
    [`${threads} alone`, () => answer(engine, input)],
    [`${threads} loaded`, () => Promise.all(Array.from({ length: AT_ONCE }, () => answer(engine, input)))],
  ]),
);
const times = await alternating(Number(rounds), contenders);
for (const { threads, engine } of engines) {
  const alone = times(`${threads} alone`);
  const loaded = times(`${threads} loaded`);
  report({
    bench: 'engine-threads',
    cores: availableParallelism(),
    threads,
    is_auto_when_busy: threads === computingThreads(undefined).fewest,
    rounds: Number(rounds),
    latency_ms: rounded(alone.wall_ms),
    latency_cpu_ms: rounded(alone.cpu_ms),
    loaded_requests_per_s: rounded((AT_ONCE * MS_PER_S) / loaded.wall_ms),
    loaded_cpu_ms: rounded(loaded.cpu_ms / AT_ONCE),
  });
  await engine.close();
}
process.exit(0);
