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

/** What a vocabulary is loaded with. A process has one backend: `gpu` is the same as for the weights. */
export interface TokenizerOptions {
  readonly weights: Weights;
  readonly gpu: Gpu;
  /** Called when something must be compiled first. */
  readonly onBuild?: (() => void) | undefined;
}

/** What weights are loaded with. */
export interface EvaluatorOptions extends TokenizerOptions {
  /** Threads that compute; 0 or undefined leaves one core for the event loop. */
  readonly threads: number | undefined;
  /** Positions that a plan may use. */
  readonly context_tokens: number;
  /** As the profile needs it; an evaluator without a choice ignores it. */
  readonly flash_attention: 'auto' | false;
  /** Equal bits on any device, whatever else is asked. */
  readonly deterministic: boolean | undefined;
  /** Memory of prefixes that are kept for reuse; an evaluator that keeps none ignores it. */
  readonly prefix_cache_bytes?: number | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** An evaluator in the table: what it can read, and how it is opened. */
export interface RegisteredEvaluator {
  readonly reads: ReadBounds;
  /** Rejects with `SetupError`. */
  openTokenizer(options: TokenizerOptions): Promise<ModelTokenizer>;
  /** Rejects with `SetupError`, and with `EvaluationFailed` when the weights cannot be loaded. */
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
 * What `open` gives for the evaluator that is wanted; with `auto` for the first one that serves here. Rejects as `open`
 * does for the last one tried, and with `SetupError` when no wanted evaluator can read as `needed`.
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

/** Whether the next evaluator is tried: weights that llama.cpp refuses are refused again there, with its own reason. */
function isPassedOn(error: unknown): boolean {
  return error instanceof AddonUnavailable || error instanceof EvaluationFailed;
}
