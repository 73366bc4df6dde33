import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import type { Gpu } from './gpu.ts';

/** What a model is opened with. */
export interface OpenOptions {
  /** A GGUF file, or the first part of a split one; the embedded weights when undefined. */
  readonly model_path?: string | undefined;
  readonly gpu?: Gpu | undefined;
  /** Threads that compute; one less than there are cores when undefined. */
  readonly threads?: number | undefined;
  /** Positions that a plan may use, at most what the model was made for; 16,384 when undefined. */
  readonly context_tokens?: number | undefined;
  /** `none` gives the model's own scores, as measuring and fitting need them; `beside` (default) applies `calibration.json`. */
  readonly calibration?: 'beside' | 'none' | undefined;
  /** What evaluates plans; `auto` when undefined. */
  readonly evaluator?: EvaluatorChoice | undefined;
  /** Equal bits whatever else is asked at the same time, on any device, at a cost in speed. */
  readonly deterministic?: boolean | undefined;
  /** Called when the C++ addon must be compiled first: once a machine, for up to a minute. */
  readonly onBuild?: (() => void) | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
