import { AddonUnavailable, EvaluationFailed } from '../errors.ts';
import type { Gpu } from '../gpu.ts';
import type { ModelTokenizer } from '../model-tokenizer.ts';
import type { PlanEvaluator } from '../plan-evaluator.ts';
import type { Weights } from '../weights.ts';
import { createAddonEvaluator } from './addon/addon-evaluator.ts';
import { createAddonTokenizer } from './addon/addon-tokenizer.ts';
import { EVALUATOR_NAMES, type EvaluatorChoice, type EvaluatorName } from './evaluator-names.ts';
import { loadLlamaEvaluator, loadLlamaTokenizer } from './llama/load-model.ts';
import { loadInTurn } from './loading-queue.ts';

/** Options of a vocabulary. A process has one backend, so `gpu` is the same as for the weights. */
export interface TokenizerOptions {
  readonly weights: Weights;
  readonly gpu: Gpu;
  /** Called before something is compiled. */
  readonly onBuild?: (() => void) | undefined;
}

/** Options of loading weights. */
export interface EvaluatorOptions extends TokenizerOptions {
  /** Threads that compute; 0 or undefined chooses them, as `computingThreads` says. */
  readonly threads: number | undefined;
  /** The largest number of positions of a plan. */
  readonly context_tokens: number;
  /** The profile's need. An evaluator without a choice ignores it. */
  readonly flash_attention: 'auto' | false;
  /** True for equal bits on any device, whatever else is asked. */
  readonly deterministic: boolean | undefined;
  /** The bytes of prefixes kept for reuse. An evaluator that keeps none ignores it. */
  readonly prefix_cache_bytes?: number | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** An evaluator in the table: its opening functions. */
export interface RegisteredEvaluator {
  /** Rejects with `SetupError`. */
  openTokenizer(options: TokenizerOptions): Promise<ModelTokenizer>;
  /** Rejects with `SetupError`, and with `EvaluationFailed` if the weights cannot be loaded. */
  openEvaluator(options: EvaluatorOptions): Promise<PlanEvaluator>;
}

const EVALUATORS: Readonly<Record<EvaluatorName, RegisteredEvaluator>> = {
  addon: {
    openTokenizer: ({ weights, ...options }) =>
      loadInTurn(() => createAddonTokenizer({ ...options, model_path: weights.first })),
    openEvaluator: ({ weights, ...options }) =>
      loadInTurn(() => createAddonEvaluator({ ...options, model_path: weights.first })),
  },
  llama: {
    openTokenizer: ({ weights, gpu }) => loadInTurn(() => loadLlamaTokenizer(weights, gpu)),
    openEvaluator: ({ weights, ...options }) => loadInTurn(() => loadLlamaEvaluator(weights, options)),
  },
};

/**
 * Opens the wanted evaluator; with `auto` the first one that works here. Rejects as `open` does for the last one tried.
 */
export async function byWantedEvaluator<Opened>(
  wanted: EvaluatorChoice,
  open: (evaluator: RegisteredEvaluator) => Promise<Opened>,
  table: Readonly<Record<EvaluatorName, RegisteredEvaluator>> = EVALUATORS,
): Promise<Opened> {
  let failure: unknown;
  for (const name of wanted === 'auto' ? EVALUATOR_NAMES : [wanted]) {
    try {
      return await open(table[name]);
    } catch (error) {
      if (!isPassedOn(error)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/**
 * Returns true if the next evaluator is tried. Weights that llama.cpp refuses are refused again there, with its reason.
 */
function isPassedOn(error: unknown): boolean {
  return error instanceof AddonUnavailable || error instanceof EvaluationFailed;
}
