/**
 * Computes with one variant of ggml's CPU backend and without our kernels, in a process of its own.
 * `cpu-variant-child.ts LIBRARY`: the library is a path. Both evaluators take the backend that is loaded first. Reads
 * `VariantWork`, so that each process need not check the weights and make the plans again, and prints `VariantOutput`.
 */
import { readFileSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Static } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { cpuLibraries } from '../../../native/cpu-library.ts';
import { createAddonEvaluator } from '../../../native/evaluators/addon/addon-evaluator.ts';
import { addonStatus } from '../../../native/evaluators/addon/addon-status.ts';
import { loadLlamaEvaluator } from '../../../native/evaluators/llama/load-model.ts';
import type { PlanLogits } from '../../../native/plan/plan.ts';
import type { PlanEvaluator } from '../../../native/plan-evaluator.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { VariantWork } from './cpu-variant.ts';
import { CONTEXT_TOKENS } from './vectors.ts';

type Model = Static<typeof VariantWork>['rounded'];

async function logitsOf({ requests }: Model, evaluator: PlanEvaluator): Promise<PlanLogits[][]> {
  const all: PlanLogits[][] = [];
  for (const plans of requests)
    all.push(
      await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope: crypto.randomUUID() }))),
    );
  await evaluator.close();
  return all;
}

async function answersOf(model: Model) {
  const common = { context_tokens: CONTEXT_TOKENS, gpu: false, threads: 1 } as const;
  const model_path = model.weights.first;
  const addon = await logitsOf(model, await createAddonEvaluator({ ...common, model_path, kernels: 'none' }));
  const options = { ...common, queue_limit: 64, flash_attention: false } as const;
  return { addon, llama: await logitsOf(model, await loadLlamaEvaluator(model.weights, options)) };
}

const [library = ''] = process.argv.slice(2);
using directory = temporaryDirectory();
await symlink(library, join(directory.path, basename(library)));
const status = await addonStatus(false, directory.path);
if (!status.available) throw new Error(status.reason);

const work = Value.Decode(VariantWork, await Bun.stdin.json());
const [rounded, widened] = [await answersOf(work.rounded), await answersOf(work.widened)];
const libraries = cpuLibraries(readFileSync('/proc/self/maps', 'utf8')).map((path) => basename(path));
console.log(JSON.stringify({ libraries, rounded, widened }));
