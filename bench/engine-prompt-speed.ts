/**
 * Tokens a second of a request ÷ llama.cpp's own prompt speed. The request has five questions about a record of 300
 * tokens. llama.cpp reads as many tokens as one sequence, with the same libllama, file, size of batches and number of
 * threads. The target is at least 0.9 in fast mode. In consistent mode the tokens are the billed ones, because a record
 * in memory is not computed again.
 *
 *   bun bench/engine-prompt-speed.ts [rounds, default 9]
 *
 * With LLAMA_BENCH=<path of a llama-bench> its prompt speed is printed beside.
 */
import { getLlama } from 'node-llama-cpp';
import { EMBEDDED_WEIGHTS, openEngine } from '../native/engine.ts';
import { alternating, answer, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 9);
const BATCH_TOKENS = 512;

const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const llama = await getLlama({ build: 'never', gpu: false, maxThreads: 0, progressLogs: false });
const model = await llama.loadModel({ modelPath: EMBEDDED_WEIGHTS });
const context = await model.createContext({
  contextSize: 1024,
  batchSize: BATCH_TOKENS,
  threads: THREADS,
  flashAttention: true,
});
const sequence = context.getSequence();
const input = fiveQuestions();
const consistent_input = fiveQuestions('consistent');
const { input_tokens } = await engine.plan(input);
const { input_tokens: consistent_tokens } = await engine.plan(consistent_input);
const prompt = model.tokenize('A parcel is late. '.repeat(input_tokens)).slice(0, input_tokens);

const times = await alternating(rounds, {
  fast: () => answer(engine, input),
  consistent: () => answer(engine, consistent_input),
  prompt: async () => {
    await sequence.clearHistory();
    await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  },
});
report({
  bench: 'engine-prompt-speed',
  threads: THREADS,
  rounds,
  input_tokens,
  fast_tokens_per_s: rounded((1000 * input_tokens) / times('fast').wall_ms),
  prompt_tokens_per_s: rounded((1000 * input_tokens) / times('prompt').wall_ms),
  speed_ratio: rounded(times('prompt').wall_ms / times('fast').wall_ms),
  speed_ratio_by_cpu_time: rounded(times('prompt').cpu_ms / times('fast').cpu_ms),
  fast_latency_ms: rounded(times('fast').wall_ms),
  consistent_input_tokens: consistent_tokens,
  consistent_latency_ms: rounded(times('consistent').wall_ms),
  consistent_speed_ratio: rounded(
    (consistent_tokens / times('consistent').wall_ms) * (times('prompt').wall_ms / input_tokens),
  ),
});

const program = process.env.LLAMA_BENCH;
if (program !== undefined) {
  const options = ['-p', String(input_tokens), '-n', '0', '-t', String(THREADS), '-b', String(BATCH_TOKENS)];
  const run = Bun.spawn([program, '-m', EMBEDDED_WEIGHTS, ...options, '-fa', '1', '-r', '9', '-o', 'json']);
  const [result]: readonly { avg_ts: number }[] = JSON.parse(await new Response(run.stdout).text());
  report({
    bench: 'llama-bench',
    threads: THREADS,
    prompt_tokens_per_s: rounded(result?.avg_ts ?? Number.NaN),
  });
}
await engine.close();
process.exit(0);
