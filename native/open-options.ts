import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import type { Gpu } from './gpu.ts';

/** The model's identity at its check. */
export interface ExpectedModel {
  /** `EngineFacts.weights_sha256`. */
  readonly weights_sha256: string | null;
  /** The name of the prompt profile. */
  readonly profile: string | null;
}

/** Options of opening a model. */
export interface OpenOptions {
  /** A GGUF file, or the first part of a split one; the embedded weights when undefined. */
  readonly model_path?: string | undefined;
  /** The required weights and profile; any when undefined or null. */
  readonly expected?: ExpectedModel | undefined;
  readonly gpu?: Gpu | undefined;
  /** The number of computing threads; undefined chooses it, as `computingThreads` says. */
  readonly threads?: number | undefined;
  /** The largest number of positions of a plan, bounded by the model's; 16,384 when undefined. */
  readonly context_tokens?: number | undefined;
  /**
   * `none` gives the model's own scores, for measuring and fitting. `beside` (default) applies that of
   * `readCalibration`.
   */
  readonly calibration?: 'beside' | 'none' | undefined;
  /** The evaluator; `auto` when undefined. */
  readonly evaluator?: EvaluatorChoice | undefined;
  /** True for equal bits on any device whatever else is asked, at a cost in speed. */
  readonly deterministic?: boolean | undefined;
  /** The bytes of prefixes kept for reuse; the evaluator's default when undefined. */
  readonly prefix_cache_bytes?: number | undefined;
  /** Called before the C++ addon is compiled: once a machine, for up to a minute. */
  readonly onBuild?: (() => void) | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
