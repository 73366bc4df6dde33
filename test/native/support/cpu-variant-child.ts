/**
 * Computes with one variant of ggml's CPU backend and without our kernels, in a process of its own.
 * `cpu-variant-child.ts LIBRARY WEIGHTS WIDENED`: the library is a path, the weights are the first parts of models. Both
 * evaluators take the backend that is loaded first. Prints the backends that were loaded, and the scores of the pinned
 * requests.
 */
import { readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { cpuLibraries } from '../../../native/cpu-library.ts';
import { createAddonEvaluator } from '../../../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import { loadLlamaEvaluator, loadLlamaTokenizer } from '../../../native/evaluators/llama/load-model.ts';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import type { PlanEvaluator } from '../../../native/plan-evaluator.ts';
import { verifyWeights } from '../../../native/weights.ts';
import { temporaryDirectory } from './models.ts';
import { CONTEXT_TOKENS, pinnedScores, scoresOf, VECTORS } from './vectors.ts';

/** Of the mode that reads each record once: kernels for old CPUs are slow. */
const ASKED = VECTORS.filter(({ mode }) => mode === 'fast');
/** Of weights in 32 bits no mean is asked, and each kernel is at work in each request. */
const ASKED_WIDENED = ASKED.filter((_, index) => index % 6 === 0);

async function scores(
  evaluator: PlanEvaluator,
  tokenizer: ModelTokenizer,
  asked: typeof VECTORS,
): Promise<readonly number[]> {
  const profile = markersV1(tokenizer);
  const all: number[] = [];
  for (const vector of asked) all.push(...(await scoresOf(vector, profile, evaluator)).flat());
  await evaluator.close();
  return all;
}

const [library = '', rounded_path = '', widened_path = ''] = process.argv.slice(2);
await using directory = await temporaryDirectory();
await symlink(library, join(directory.path, basename(library)));
const status = await addonStatus(false, directory.path);
if (!status.available) throw new Error(status.reason);

const answers: { addon: readonly number[]; llama: readonly number[] }[] = [];
for (const [model_path, asked] of [
  [rounded_path, ASKED],
  [widened_path, ASKED_WIDENED],
] as const) {
  const common = { context_tokens: CONTEXT_TOKENS, gpu: false, threads: 1 } as const;
  const weights = await verifyWeights(model_path);
  const tokenizer = await loadLlamaTokenizer(weights, false);
  const addon = await scores(
    await createAddonEvaluator({ ...common, model_path, kernels: 'none' }),
    tokenizer,
    asked,
  );
  const llama = await scores(
    await loadLlamaEvaluator(weights, { ...common, queue_limit: 64, flash_attention: false }),
    tokenizer,
    asked,
  );
  await tokenizer.close();
  answers.push({ addon, llama });
}
const libraries = cpuLibraries(readFileSync('/proc/self/maps', 'utf8')).map((path) => basename(path));
const pinned = ASKED.flatMap(pinnedScores).flat();
console.log(JSON.stringify({ libraries, answers, pinned }));
