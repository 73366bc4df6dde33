import { rejectNarrowMatrices } from './amx.ts';
import { applyTemperature, type Calibration, readCalibration } from './calibration.ts';
import type { DecisionEngine, DecisionPlanner, EvaluateOptions, TakeTurn } from './engine.ts';
import { AddonUnavailable, createAddonEvaluator, createAddonTokenizer } from './evaluators/addon/index.ts';
import type { Gpu } from './evaluators/llama/backend.ts';
import { loadLlama, loadLlamaTokenizer } from './evaluators/llama/load.ts';
import { type ModelFacts, readModelFacts } from './gguf.ts';
import type { ModelTokenizer } from './model-tokenizer.ts';
import { codesV1 } from './plan/codes-v1.ts';
import { withSteadyReading } from './plan/consistent-readings.ts';
import { MARKERS_V1_TOKENS, markersV1 } from './plan/markers-v1.ts';
import { type PlanLogits, planTokens } from './plan/plan.ts';
import type { DecisionInput, DecisionPlan, PromptProfile, Tokenizer } from './plan/profile.ts';
import type { Vocabulary } from './plan/vocabulary.ts';
import { EngineFailed, EvaluationFailed, type PlanEvaluator } from './plan-evaluator.ts';
import { abortsOnText } from './pre-tokenizer.ts';
import { Slices } from './slices.ts';
import { EMBEDDED_WEIGHTS, requireUnchanged, verifyWeights, type Weights, WeightsError } from './weights.ts';

/** The most positions that a plan may use unless configured: the model's advertised 16K. */
const DEFAULT_CONTEXT_TOKENS = 16_384;
/** Plans that may wait in an evaluator: whoever serves many bounds requests long before. */
const WAITING_PLANS_MAX = 65_536;

/** Which implementation evaluates plans. */
export type Evaluator = 'auto' | PlanEvaluator['kind'];

export interface OpenOptions {
  /** A GGUF file, or the first part of a split one; the embedded weights when undefined. */
  readonly model_path?: string | undefined;
  readonly gpu?: Gpu | undefined;
  /** Threads that compute; one less than there are cores when undefined. */
  readonly threads?: number | undefined;
  /** Positions that a plan may use, at most what the model was made for. */
  readonly context_tokens?: number | undefined;
  /** `none` gives the model's own scores, as evaluation and fitting need them; `beside` (default) applies `calibration.json`. */
  readonly calibration?: 'beside' | 'none' | undefined;
  /** What evaluates plans: the C++ addon where it can be built (`auto`, the default), or one by name. */
  readonly evaluator?: Evaluator | undefined;
  /** Equal bits whatever else is asked at the same time, on any device, at a cost in speed. */
  readonly deterministic?: boolean | undefined;
  /** Called when the C++ engine must be compiled first: once a machine, for up to a minute. */
  readonly onBuild?: (() => void) | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** What a model is opened as, besides what the options say. */
interface ModelSetup {
  readonly weights: Weights;
  readonly context_tokens: number;
  readonly has_markers: boolean;
  readonly options: OpenOptions;
}

/** decision-1's vocabulary has its control tokens at fixed ids; any other model is asked through its chat template. */
function hasMarkers(vocabulary: Vocabulary): boolean {
  return Object.entries(MARKERS_V1_TOKENS).every(
    ([text, id]) => vocabulary.texts[id] === text && vocabulary.special.has(id),
  );
}

function chatProfile(weights: Weights, facts: ModelFacts, tokenizer: Tokenizer): PromptProfile {
  try {
    return codesV1({ tokenizer, vocabulary: facts.vocabulary, chat_template: facts.chat_template });
  } catch (error) {
    throw new WeightsError(
      `The model ${weights.first} cannot answer typed questions (${error instanceof Error ? error.message : String(error)}): give another model.`,
      { cause: error },
    );
  }
}

/**
 * `byAddon`'s result, or `byLlama`'s where the addon cannot be built or refuses the weights; `options.evaluator` names one
 * of them. Throws `AddonUnavailable` when the addon is asked for and cannot be built, and what they throw.
 */
async function byWantedEvaluator<Opened>(
  { evaluator = 'auto' }: OpenOptions,
  byAddon: () => Promise<Opened>,
  byLlama: () => Promise<Opened>,
): Promise<Opened> {
  if (evaluator !== 'llama') {
    try {
      return await byAddon();
    } catch (error) {
      // Nothing is lost: "tds doctor" says why the addon cannot be built.
      // Weights that llama.cpp refuses are refused again below, with llama.cpp's own reason.
      const is_expected = error instanceof AddonUnavailable || error instanceof EvaluationFailed;
      if (evaluator === 'addon' || !is_expected) throw error;
    }
  }
  return await byLlama();
}

/** Throws `SetupError`: `WeightsError`, `AddonUnavailable`, and `DeviceUnavailable` when node-llama-cpp lacks the device. */
function openTokenizer(weights: Weights, options: OpenOptions): Promise<ModelTokenizer> {
  const { gpu = 'auto', onBuild } = options;
  return byWantedEvaluator<ModelTokenizer>(
    options,
    () => createAddonTokenizer({ model_path: weights.first, gpu, onBuild }),
    () => loadLlamaTokenizer(weights, gpu),
  );
}

/**
 * Throws `SetupError`: `WeightsError`, `AddonUnavailable`, and `DeviceUnavailable` when a GPU is asked for that is not
 * there.
 */
function openEvaluator({
  weights,
  context_tokens,
  has_markers,
  options,
}: ModelSetup): Promise<PlanEvaluator> {
  const { threads, gpu = 'auto', deterministic, onBuild, onProgress } = options;
  const common = { gpu, threads, context_tokens, queue_limit: WAITING_PLANS_MAX };
  return byWantedEvaluator<PlanEvaluator>(
    options,
    () => createAddonEvaluator({ ...common, model_path: weights.first, deterministic, onBuild }),
    () =>
      loadLlama(weights, {
        ...common,
        // decision-1's vectors were made without it, and with it their scores move by more than they may.
        flash_attention: has_markers ? false : 'auto',
        onProgress,
      }),
  );
}

const atOnce: TakeTurn = (_, work) => work();

/** A loaded model with its profile and calibration, as the service sees it. */
class ProfiledEngine implements DecisionEngine {
  readonly facts: DecisionEngine['facts'];

  constructor(
    private readonly planner: DecisionPlanner,
    private readonly evaluator: PlanEvaluator,
    private readonly profile: PromptProfile,
    private readonly calibration: Calibration | undefined,
    weights: Weights,
  ) {
    this.facts = {
      weights_sha256: weights.sha256,
      profile: profile.name,
      context_tokens: evaluator.context_tokens,
      evaluator: evaluator.kind,
      device: evaluator.device,
      missing_gpu: evaluator.missing_gpu,
      calibrated: calibration !== undefined,
    };
  }

  plan(input: DecisionInput): Promise<DecisionPlan> {
    return this.planner.plan(input);
  }

  async evaluate(
    input: DecisionInput,
    plan: DecisionPlan,
    options: EvaluateOptions,
  ): Promise<readonly (readonly number[])[]> {
    // A request that has lost one plan has no answer: its plans that still wait give up their places.
    const failure = new AbortController();
    const signal =
      options.signal === undefined ? failure.signal : AbortSignal.any([options.signal, failure.signal]);
    const { scope, takeTurn = atOnce } = options;
    const { evaluator } = this;
    const evaluations: Promise<PlanLogits>[] = [];
    const slices = new Slices();
    try {
      for (const one of plan.plans) {
        await slices.pause();
        const evaluation = takeTurn(
          { tokens: planTokens(one), lane: evaluator.laneOf(one), lane_tokens: evaluator.lane_tokens },
          () => evaluator.evaluate(one, { scope, signal }),
          signal,
        );
        // It may be rejected while the next one is submitted, which must not wait for what has no answer.
        evaluation.catch((error: unknown) => failure.abort(error));
        evaluations.push(evaluation);
        signal.throwIfAborted();
      }
      const scores = this.profile.scores(input, plan.plans, await Promise.all(evaluations));
      const { calibration } = this;
      if (calibration === undefined) return scores;
      return input.questions.map((question, index) =>
        applyTemperature(scores[index] ?? [], question, calibration.temperatures[input.mode]),
      );
    } catch (error) {
      failure.abort(error);
      await Promise.allSettled(evaluations);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.evaluator.close();
  }
}

/** A model's prompt profile with its tokenizer, and what its weights are loaded with. */
class ModelPlanner implements DecisionPlanner {
  #closed = false;

  constructor(
    private readonly setup: ModelSetup,
    private readonly tokenizer: ModelTokenizer,
    private readonly profile: PromptProfile,
  ) {}

  async plan(input: DecisionInput): Promise<DecisionPlan> {
    if (this.#closed) throw new EngineFailed('The model has been closed.');
    return await this.profile.plan(input, this.setup.context_tokens);
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
      const calibration =
        options.calibration === 'none'
          ? undefined
          : await readCalibration(weights.first, profile.name, weights.sha256);
      return new ProfiledEngine(this, evaluator, profile, calibration, weights);
    } catch (error) {
      await evaluator.close();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.tokenizer.close();
  }
}

/** What the weights' file says of the model. Throws `WeightsError` when the model cannot be served. */
async function readServableFacts({ first }: Weights): Promise<ModelFacts> {
  const facts = await readModelFacts(first);
  if (abortsOnText(facts.pre_tokenizer)) {
    throw new WeightsError(
      `The model ${first} cannot be served (llama.cpp's tokenizer for it ends the process on some texts): give another model.`,
    );
  }
  if (!(facts.trained_context_tokens >= 1)) {
    throw new WeightsError(
      `The model ${first} does not say for how many tokens it was made: give another file.`,
    );
  }
  return facts;
}

/**
 * Reads a model's vocabulary and chooses its prompt profile: `markers-v1` for decision-1's vocabulary, `codes-v1` for any
 * other. Throws `SetupError`: `WeightsError` when the files are missing, cut or corrupt, or the model cannot be served.
 */
export async function openPlanner(options: OpenOptions = {}): Promise<DecisionPlanner> {
  const weights = await verifyWeights(options.model_path ?? EMBEDDED_WEIGHTS);
  // The one reads the file on this thread, the other meanwhile on a thread of its own.
  const [read, opened] = await Promise.allSettled([
    readServableFacts(weights),
    openTokenizer(weights, options),
  ]);
  if (opened.status === 'rejected') throw read.status === 'rejected' ? read.reason : opened.reason;
  const tokenizer = opened.value;
  try {
    if (read.status === 'rejected') throw read.reason;
    const facts = read.value;
    const { trained_context_tokens } = facts;
    const context_tokens = Math.min(options.context_tokens ?? DEFAULT_CONTEXT_TOKENS, trained_context_tokens);
    const has_markers = hasMarkers(facts.vocabulary);
    const profile = has_markers
      ? withSteadyReading(markersV1(tokenizer))
      : chatProfile(weights, facts, tokenizer);
    return new ModelPlanner({ weights, context_tokens, has_markers, options }, tokenizer, profile);
  } catch (error) {
    await tokenizer.close();
    throw error;
  }
}

/**
 * Loads a model for as long as the engine is open, planner and weights together. Throws as `openPlanner` and
 * `DecisionPlanner.openEngine` do.
 */
export async function openEngine(options: OpenOptions = {}): Promise<DecisionEngine> {
  const planner = await openPlanner(options);
  try {
    const engine = await planner.openEngine();
    return {
      facts: engine.facts,
      plan: (input) => planner.plan(input),
      evaluate: (input, plan, evaluation) => engine.evaluate(input, plan, evaluation),
      async close() {
        await Promise.all([engine.close(), planner.close()]);
      },
    };
  } catch (error) {
    await planner.close();
    throw error;
  }
}
