import { AddonUnavailable, EvaluationFailed, SetupError } from '../errors.ts';
import type { Gpu } from '../gpu.ts';
import type { ModelTokenizer } from '../model-tokenizer.ts';
import { coversReads, type ReadBounds } from '../plan/read-bounds.ts';
import type { PlanEvaluator } from '../plan-evaluator.ts';
import type { Weights } from '../weights.ts';
import { createAddonEvaluator } from './addon/addon-evaluator.ts';
import { createAddonTokenizer } from './addon/addon-tokenizer.ts';
import { EVALUATOR_NAMES, type EvaluatorChoice, type EvaluatorName } from './evaluator-names.ts';
import { loadLlamaEvaluator, loadLlamaTokenizer } from './llama/load-model.ts';

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

/** An evaluator in the table: its bounds of reads, and its opening functions. */
export interface RegisteredEvaluator {
  readonly reads: ReadBounds;
  /** Rejects with `SetupError`. */
  openTokenizer(options: TokenizerOptions): Promise<ModelTokenizer>;
  /** Rejects with `SetupError`, and with `EvaluationFailed` if the weights cannot be loaded. */
  openEvaluator(options: EvaluatorOptions): Promise<PlanEvaluator>;
}

const ANY_READ: ReadBounds = { tokens_max: Number.POSITIVE_INFINITY, position: 'anywhere' };

const EVALUATORS: Readonly<Record<EvaluatorName, RegisteredEvaluator>> = {
  addon: {
    reads: ANY_READ,
    openTokenizer: ({ weights, ...options }) =>
      createAddonTokenizer({ ...options, model_path: weights.first }),
    openEvaluator: ({ weights, ...options }) =>
      createAddonEvaluator({ ...options, model_path: weights.first }),
  },
  llama: {
    reads: ANY_READ,
    openTokenizer: ({ weights, gpu }) => loadLlamaTokenizer(weights, gpu),
    openEvaluator: ({ weights, ...options }) => loadLlamaEvaluator(weights, options),
  },
};

/**
 * Opens the wanted evaluator; with `auto` the first one that works here. Rejects as `open` does for the last one tried.
 * Rejects with `SetupError` if no wanted evaluator meets `needed`.
 */
export async function byWantedEvaluator<Opened>(
  wanted: EvaluatorChoice,
  needed: ReadBounds | undefined,
  open: (evaluator: RegisteredEvaluator) => Promise<Opened>,
  table: Readonly<Record<EvaluatorName, RegisteredEvaluator>> = EVALUATORS,
): Promise<Opened> {
  const names = wanted === 'auto' ? EVALUATOR_NAMES : [wanted];
  const candidates = names
    .map((name) => table[name])
    .filter(({ reads }) => needed === undefined || coversReads(reads, needed));
  const last = candidates.pop();
  if (last === undefined) {
    throw new SetupError(
      `The evaluator ${names.join(' or ')} cannot read what this model needs: choose another evaluator or model.`,
    );
  }
  for (const candidate of candidates) {
    try {
      return await open(candidate);
    } catch (error) {
      if (!isPassedOn(error)) throw error;
    }
  }
  return await open(last);
}

/**
 * Returns true if the next evaluator is tried. Weights that llama.cpp refuses are refused again there, with its reason.
 */
function isPassedOn(error: unknown): boolean {
  return error instanceof AddonUnavailable || error instanceof EvaluationFailed;
}
