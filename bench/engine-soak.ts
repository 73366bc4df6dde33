/**
 * Measures the process's memory while the engine is under full load. Requests have all sizes. Some are cancelled, some
 * repeat a record. Memory must stay flat once the caches are full.
 *
 *   bun bench/engine-soak.ts [seconds, default 600]
 */

import { type DecisionInput, EngineOverloaded, openEngine } from '../native/engine.ts';
import { fiveQuestions, THREADS } from './support/engine.ts';
import { median, report, rounded } from './support/statistics.ts';

const seconds = Number(process.argv[2] ?? 600);
const CLIENTS = 16;
const MEGABYTE = 1 << 20;

const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const five = fiveQuestions();
/** Every 30th request has a long record; a third of the records come again. */
function request(number: number): DecisionInput {
  const record = number % 3 === 0 ? number % 7 : number;
  const sentences = number % 30 === 29 ? 600 : record % 40;
  return { ...five, state: `${record} ${'The parcel is late and nobody calls. '.repeat(sentences)}` };
}

const end = performance.now() + 1000 * seconds;
const counts = { answered: 0, cancelled: 0, refused: 0 };
let next = 0;
const clients = Array.from({ length: CLIENTS }, async () => {
  while (performance.now() < end) {
    const number = next++;
    const input = request(number);
    const leaves = number % 10 === 9 ? { signal: AbortSignal.timeout(number % 100) } : {};
    try {
      await engine.evaluate(await engine.plan(input), {
        scope: `organization ${number % 3}`,
        ...leaves,
      });
      counts.answered += 1;
    } catch (error) {
      if (error instanceof EngineOverloaded) counts.refused += 1;
      else if (leaves.signal?.aborted) counts.cancelled += 1;
      else throw error;
    }
  }
});
const resident_mb: number[] = [];
const sampling = setInterval(() => resident_mb.push(process.memoryUsage().rss / MEGABYTE), 1000);
await Promise.all(clients);
clearInterval(sampling);
await engine.close();

const part = (from: number, to: number): number =>
  rounded(
    median(resident_mb.slice(Math.floor(from * resident_mb.length), Math.ceil(to * resident_mb.length))),
  );
report({
  bench: 'engine-soak',
  threads: THREADS,
  seconds,
  ...counts,
  resident_mb_by_fifths: [part(0, 0.2), part(0.2, 0.4), part(0.4, 0.6), part(0.6, 0.8), part(0.8, 1)],
});
