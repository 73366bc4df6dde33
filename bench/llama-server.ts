/**
 * Compares a model behind llama-server with the same file in this process: the time of five questions about a record of
 * 300 tokens, and the difference of probabilities. With 8-bit weights both round activations, each in its own order.
 * `test/upstreams/llama-server.test.ts` compares 32-bit weights. By default decision-1's weights are asked by
 * `codes-v1`, as any model behind such a server.
 *
 *   bun bench/build-llama-server.ts && bun bench/llama-server.ts [rounds, default 5] [GGUF]
 */
import { EMBEDDED_WEIGHTS, openEngine, openScoringPlanner } from '../native/engine.ts';
import type { Mode } from '../src/questions/question.ts';
import { UpstreamModel } from '../src/upstreams/upstream-model.ts';
import { temporaryDirectory } from '../test/support/temporary-directory.ts';
import { llamaServerProgram, startLlamaServer } from '../test/upstreams/llama-server-process.ts';
import { distanceOf, probabilitiesOf, tokenPool, withoutMarkers } from '../test/upstreams/token-models.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 5);
await using directory = await temporaryDirectory();
const path = process.argv[3] ?? (await withoutMarkers(EMBEDDED_WEIGHTS, directory.path));
const CONTEXT_TOKENS = 2_048;
const SLOTS = 4;
const program = llamaServerProgram();
if (program === undefined) throw new Error('There is no llama-server: bun bench/build-llama-server.ts');

await using server = await startLlamaServer(program, path, [
  ...['--ctx-size', String(SLOTS * (CONTEXT_TOKENS + 1)), '--parallel', String(SLOTS)],
]);
const planner = await openScoringPlanner({ model_path: path, gpu: false });
await planner.close();
const engine = await openEngine({
  model_path: path,
  gpu: false,
  threads: THREADS,
  context_tokens: CONTEXT_TOKENS,
  calibration: 'none',
});
const upstream = new UpstreamModel(
  {
    id: 'bench',
    context_tokens: CONTEXT_TOKENS,
    input_price_micros_per_million_tokens: 1,
    upstreams: tokenPool('llama-server', [server.address], path, planner),
  },
  { now_ms: () => performance.now(), onProblem: (error) => console.error(error) },
);
let request = 0;
/** Returns a request whose record is new to both. */
const next = (mode: Mode) => {
  const five = fiveQuestions(mode);
  return { ...five, state: `${request++} ${five.state}` };
};
const byEngine = async (input: ReturnType<typeof next>) =>
  await engine.evaluate(await engine.plan(input), { scope: 'bench' });
const byServer = async (input: ReturnType<typeof next>) =>
  await upstream.answer(await upstream.plan(input), { scope: 'bench' });

for (const mode of ['fast', 'consistent'] as const) {
  const distances: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const input = next(mode);
    const { scores } = await byServer(input);
    distances.push(distanceOf(probabilitiesOf(await byEngine(input)), probabilitiesOf(scores)));
  }
  const times = await alternating(rounds, {
    engine: async () => {
      await byEngine(next(mode));
    },
    server: async () => {
      await byServer(next(mode));
    },
  });
  report({
    bench: 'llama-server',
    mode,
    profile: planner.profile,
    threads: THREADS,
    slots: SLOTS,
    rounds,
    engine_ms: rounded(times('engine').wall_ms),
    server_ms: rounded(times('server').wall_ms),
    time_ratio: rounded(times('server').wall_ms / times('engine').wall_ms),
    distance_max: Math.max(...distances),
  });
}
await upstream.close();
await engine.close();
