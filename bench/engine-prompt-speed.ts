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
import { EMBEDDED_WEIGHTS, openEngine } from '../native/engine.ts';
import { alternating, answer, fiveQuestions, THREADS } from './support/engine.ts';
import { LLAMA_BATCH_TOKENS, openLlamaReader } from './support/llama-reader.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 9);

const engine = await openEngine({ evaluator: 'addon', gpu: false, threads: THREADS });
const llama = await openLlamaReader(THREADS, 1024);
const input = fiveQuestions();
const consistent_input = fiveQuestions('consistent');
const { input_tokens } = await engine.plan(input);
const { input_tokens: consistent_tokens } = await engine.plan(consistent_input);
const prompt = llama.tokens('A parcel is late. '.repeat(input_tokens), input_tokens);

const times = await alternating(rounds, {
  fast: () => answer(engine, input),
  consistent: () => answer(engine, consistent_input),
  prompt: () => llama.read(prompt),
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
  const options = [
    '-p',
    String(input_tokens),
    '-n',
    '0',
    '-t',
    String(THREADS),
    '-b',
    String(LLAMA_BATCH_TOKENS),
  ];
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
