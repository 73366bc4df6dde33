/**
 * Time of a request of five questions with the addon's kernels ÷ with ggml's, and its tokens a second ÷ llama.cpp's own
 * prompt speed. All use one variant of ggml's CPU backend, which represents its CPUs: `haswell` those with AVX2 at
 * most.
 *
 *   bun bench/engine-kernels.ts [rounds, default 9] [variant, default haswell] [instructions, default avx2]
 */
import { symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { findLibrary } from '../native/addon/library.ts';
import { loadedCpuLibrary } from '../native/cpu-library.ts';
import { createAddonEvaluator } from '../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../native/evaluators/addon/addon-status.ts';
import { OWN_INSTRUCTIONS } from '../native/evaluators/addon/binding.ts';
import { markersV1 } from '../native/plan/markers-v1.ts';
import type { PlanEvaluator } from '../native/plan-evaluator.ts';
import { EMBEDDED_WEIGHTS } from '../native/weights.ts';
import { llamaTokenizer } from '../test/native/support/models.ts';
import { temporaryDirectory } from '../test/support/temporary-directory.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { openLlamaReader } from './support/llama-reader.ts';
import { report, rounded } from './support/statistics.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const [rounds = '9', variant = 'haswell', wanted = 'avx2'] = positionals;
const instructions = OWN_INSTRUCTIONS.find((name) => name === wanted);
if (instructions === undefined) throw new Error(`The instructions are ${OWN_INSTRUCTIONS.join(' or ')}.`);
const CONTEXT_TOKENS = 1024;

const library = findLibrary(false);
if (library === undefined) throw new Error('node-llama-cpp has no libraries for this machine.');
const backend = join(library.directory, `libggml-cpu-${variant}.so`);
await using directory = await temporaryDirectory();
await symlink(backend, join(directory.path, basename(backend)));
// The backend that a process loads first is used by everything in it.
const status = await addonStatus(false, directory.path);
if (!status.available) throw new Error(status.reason);
if (loadedCpuLibrary() !== basename(backend)) throw new Error(`This CPU cannot run ${backend}.`);

const options = {
  model_path: EMBEDDED_WEIGHTS,
  context_tokens: CONTEXT_TOKENS,
  gpu: false,
  threads: THREADS,
} as const;
const own = await createAddonEvaluator({ ...options, kernels: instructions });
const ggml = await createAddonEvaluator({ ...options, kernels: 'none' });
const { tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS);
const { plans } = await markersV1(tokenizer).plan(fiveQuestions(), CONTEXT_TOKENS);
const tokens = plans.reduce(
  (sum, { prefix, branches }) =>
    sum + prefix.length + branches.reduce((length, branch) => length + branch.tokens.length, 0),
  0,
);
const llama = await openLlamaReader(THREADS, CONTEXT_TOKENS);
const prompt = llama.tokens('A parcel is late. '.repeat(tokens), tokens);

let scopes = 0;
/** Evaluates the plans without a kept prefix. */
async function evaluate(evaluator: PlanEvaluator): Promise<void> {
  const scope = `bench ${scopes++}`;
  await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope })));
}

const times = await alternating(Number(rounds), {
  own: () => evaluate(own),
  ggml: () => evaluate(ggml),
  prompt: () => llama.read(prompt),
});
report({
  bench: 'engine-kernels',
  library: loadedCpuLibrary(),
  instructions,
  threads: THREADS,
  rounds: Number(rounds),
  tokens,
  own_ms: rounded(times('own').wall_ms),
  ggml_ms: rounded(times('ggml').wall_ms),
  to_ggml: rounded(times('own').wall_ms / times('ggml').wall_ms),
  to_ggml_by_cpu_time: rounded(times('own').cpu_ms / times('ggml').cpu_ms),
  own_tokens_per_s: rounded((1000 * tokens) / times('own').wall_ms),
  prompt_tokens_per_s: rounded((1000 * tokens) / times('prompt').wall_ms),
  speed_ratio: rounded(times('prompt').wall_ms / times('own').wall_ms),
});
await own.close();
await ggml.close();
process.exit(0);
