import { rejectNarrowMatrices } from './amx.ts';
import { type Calibration, readCalibration } from './calibration.ts';
import type { DecisionEngine, DecisionPlanner } from './decision-engine.ts';
import { EngineFailed } from './errors.ts';
import { byWantedEvaluator } from './evaluators/evaluators.ts';
import type { ModelTokenizer } from './model-tokenizer.ts';
import type { OpenOptions } from './open-options.ts';
import type { DecisionInput, DecisionPlan, PromptProfile, RegisteredProfile } from './plan/profile.ts';
import type { PlanEvaluator } from './plan-evaluator.ts';
import { ProfiledEngine } from './profiled-engine.ts';
import { requireUnchanged, type Weights } from './weights.ts';

/** The setup of a model's engines. */
export interface ModelSetup {
  readonly weights: Weights;
  readonly context_tokens: number;
  /** The profile's need of an evaluator. */
  readonly flash_attention: RegisteredProfile['flash_attention'];
  readonly options: OpenOptions;
}

/** The content of a model's files. */
export interface CheckedModel {
  readonly weights_sha256: string;
  readonly profile: string;
  /** True if the weights have a calibration. */
  readonly is_calibrated: boolean;
}

/** A model's prompt profile with its tokenizer, and the setup of its engines. */
export class ModelPlanner implements DecisionPlanner {
  #closed = false;

  /** Owns `tokenizer`, which `profile` uses, and closes it on close. */
  constructor(
    private readonly setup: ModelSetup,
    private readonly tokenizer: ModelTokenizer,
    private readonly profile: PromptProfile,
  ) {}

  async plan(input: DecisionInput): Promise<DecisionPlan> {
    if (this.#closed) throw new EngineFailed('The model has been closed.');
    return { input, ...(await this.profile.plan(input, this.setup.context_tokens)) };
  }

  async openEngine(): Promise<DecisionEngine> {
    if (this.#closed) throw new EngineFailed('The model has been closed.');
    const { profile } = this;
    const { weights, options } = this.setup;
    // The vocabulary in memory must be that of the weights.
    await requireUnchanged(weights);
    const evaluator = await openEvaluator(this.setup);
    try {
      if (evaluator.device === 'cpu') await rejectNarrowMatrices(weights);
      const calibration = options.calibration === 'none' ? undefined : await this.#readCalibration();
      return new ProfiledEngine(this, evaluator, profile, calibration, weights);
    } catch (error) {
      await evaluator.close();
      throw error;
    }
  }

  /** Reads the files that an engine needs beside the weights. Rejects with `WeightsError`. */
  async check(): Promise<CheckedModel> {
    const calibration = await this.#readCalibration();
    return {
      weights_sha256: this.setup.weights.sha256,
      profile: this.profile.name,
      is_calibrated: calibration !== undefined,
    };
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.tokenizer.close();
  }

  #readCalibration(): Promise<Calibration | undefined> {
    const { first, sha256 } = this.setup.weights;
    return readCalibration(first, this.profile.name, sha256);
  }
}

/** Rejects with `SetupError`, `DeviceUnavailable` if a requested GPU is missing, and `EvaluationFailed`. */
function openEvaluator({
  weights,
  context_tokens,
  flash_attention,
  options,
}: ModelSetup): Promise<PlanEvaluator> {
  const { evaluator: wanted = 'auto', gpu = 'auto', threads, deterministic } = options;
  const { prefix_cache_bytes, onBuild, onProgress } = options;
  return byWantedEvaluator(wanted, (evaluator) =>
    evaluator.openEvaluator({
      weights,
      gpu,
      threads,
      context_tokens,
      flash_attention,
      deterministic,
      prefix_cache_bytes,
      onBuild,
      onProgress,
    }),
  );
}
