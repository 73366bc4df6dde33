import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import type { Gpu } from './gpu.ts';

/** What a model was when somebody checked it. */
export interface ExpectedModel {
  /** `EngineFacts.weights_sha256`. */
  readonly weights_sha256: string | null;
  /** The name of the prompt profile. */
  readonly profile: string | null;
}

/** What a model is opened with. */
export interface OpenOptions {
  /** A GGUF file, or the first part of a split one; the embedded weights when undefined. */
  readonly model_path?: string | undefined;
  /** What the weights and their profile must be; any when undefined or null. */
  readonly expected?: ExpectedModel | undefined;
  readonly gpu?: Gpu | undefined;
  /** Threads that compute; one less than there are cores when undefined. */
  readonly threads?: number | undefined;
  /** Positions that a plan may use, at most what the model was made for; 16,384 when undefined. */
  readonly context_tokens?: number | undefined;
  /**
   * `none` gives the model's own scores, as measuring and fitting need them; `beside` (default) applies
   * `calibration.json`.
   */
  readonly calibration?: 'beside' | 'none' | undefined;
  /** What evaluates plans; `auto` when undefined. */
  readonly evaluator?: EvaluatorChoice | undefined;
  /** Equal bits whatever else is asked at the same time, on any device, at a cost in speed. */
  readonly deterministic?: boolean | undefined;
  /** Memory of prefixes that are kept for reuse, where the evaluator keeps any; its own choice when undefined. */
  readonly prefix_cache_bytes?: number | undefined;
  /** Called when the C++ addon must be compiled first: once a machine, for up to a minute. */
  readonly onBuild?: (() => void) | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
