import { errorMessage, excerpt } from '../src/errors/error-message.ts';
import type { DecisionEngine, ScoringPlanner } from './decision-engine.ts';
import { WeightsError } from './errors.ts';
import { byWantedEvaluator } from './evaluators/evaluators.ts';
import { type ModelFacts, readHeader, readModelFacts } from './model-facts.ts';
import { type CheckedModel, ModelPlanner } from './model-planner.ts';
import type { ModelTokenizer } from './model-tokenizer.ts';
import type { ExpectedModel, OpenOptions } from './open-options.ts';
import type { PromptProfile, RegisteredProfile } from './plan/profile.ts';
import { profileFor } from './plan/profiles.ts';
import { hasEqualTexts } from './plan/vocabulary.ts';
import { abortsOnText } from './pre-tokenizer.ts';
import { VocabularyPlanner } from './vocabulary-planner.ts';
import { EMBEDDED_WEIGHTS, verifyWeights, type Weights } from './weights.ts';

/** The default of the largest number of positions of a plan: the model's advertised 16K. */
const DEFAULT_CONTEXT_TOKENS = 16_384;

/** Reads the model's facts from the weights' file. Throws `WeightsError` if the model cannot be served. */
async function readServableFacts({ first, parts }: Weights): Promise<ModelFacts> {
  const facts = await readModelFacts(first);
  for (const part of parts.slice(1)) await readHeader(part);
  if (abortsOnText(facts.pre_tokenizer)) {
    throw new WeightsError(
      `The model ${first} cannot be served (llama.cpp's tokenizer for it ends the process on some texts): give another model.`,
    );
  }
  if (hasEqualTexts(facts.vocabulary)) {
    throw new WeightsError(
      `The model ${first} cannot be served (llama.cpp ends the process over two tokens of the same text): download it again.`,
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
 * Throws `SetupError`: `WeightsError`, `AddonUnavailable`, and `DeviceUnavailable` when node-llama-cpp lacks the
 * device.
 */
function openTokenizer(weights: Weights, options: OpenOptions): Promise<ModelTokenizer> {
  const { evaluator: wanted = 'auto', gpu = 'auto', onBuild } = options;
  return byWantedEvaluator(wanted, (evaluator) => evaluator.openTokenizer({ weights, gpu, onBuild }));
}

/** Makes the model's profile, and returns it with its row. Throws `WeightsError` if the model cannot be asked. */
async function makeProfile(
  { first }: Weights,
  { vocabulary, chat_template }: ModelFacts,
  tokenizer: ModelTokenizer,
): Promise<{ readonly registered: RegisteredProfile; readonly profile: PromptProfile }> {
  try {
    const registered = profileFor(vocabulary);
    return { registered, profile: await registered.make({ tokenizer, vocabulary, chat_template }) };
  } catch (error) {
    throw new WeightsError(
      `The model ${first} cannot answer typed questions (${excerpt(errorMessage(error))}): give another model.`,
      { cause: error },
    );
  }
}

/** Throws `WeightsError` if the weights are not those that were checked. */
function requireWeights({ first, sha256 }: Weights, { weights_sha256 }: ExpectedModel, advice: string): void {
  if (weights_sha256 === null || weights_sha256 === sha256) return;
  throw new WeightsError(
    `The weights ${first} are others than when the model was added (SHA-256 ${sha256}, not ${weights_sha256}): put the file back, or ${advice}.`,
  );
}

/** Throws `WeightsError` if another profile fits the weights than at their check. */
function requireProfile({ first }: Weights, { name }: PromptProfile, { profile }: ExpectedModel): void {
  if (profile === null || profile === name) return;
  throw new WeightsError(
    `The model ${first} would be asked by ${name}, and was added for ${profile}: remove the model and add it again.`,
  );
}

/** An open vocabulary, for any evaluator of its plans. */
interface OpenVocabulary {
  readonly weights: Weights;
  readonly facts: ModelFacts;
  readonly context_tokens: number;
  readonly tokenizer: ModelTokenizer;
  readonly registered: RegisteredProfile;
  readonly profile: PromptProfile;
}

/** `advice` says how other weights than the expected ones are taken. */
async function openVocabulary(
  options: OpenOptions,
  advice = 'take the new one by "tds model reload"',
): Promise<OpenVocabulary> {
  const weights = await verifyWeights(options.model_path ?? EMBEDDED_WEIGHTS);
  const { expected } = options;
  if (expected !== undefined) requireWeights(weights, expected, advice);
  // These run in order, because llama.cpp may open only a model that was found servable.
  const facts = await readServableFacts(weights);
  const tokenizer = await openTokenizer(weights, options);
  try {
    const { trained_context_tokens } = facts;
    const context_tokens = Math.min(options.context_tokens ?? DEFAULT_CONTEXT_TOKENS, trained_context_tokens);
    const { registered, profile } = await makeProfile(weights, facts, tokenizer);
    if (expected !== undefined) requireProfile(weights, profile, expected);
    return { weights, facts, context_tokens, tokenizer, registered, profile };
  } catch (error) {
    await tokenizer.close();
    throw error;
  }
}

/**
 * Reads a model's vocabulary and makes the first prompt profile that fits it. Throws `SetupError`: `WeightsError` if
 * the files are missing, truncated, corrupt or unexpected (`options.expected`), or the model cannot be served.
 */
export async function openPlanner(options: OpenOptions): Promise<ModelPlanner> {
  const { weights, context_tokens, tokenizer, registered, profile } = await openVocabulary(options);
  const { flash_attention } = registered;
  return new ModelPlanner({ weights, context_tokens, flash_attention, options }, tokenizer, profile);
}

/** Does the same for plans that a server evaluates. A file without tensors is enough. Throws as `openPlanner` does. */
export async function openScoringPlanner(options: OpenOptions): Promise<ScoringPlanner> {
  const { weights, context_tokens, facts, tokenizer, profile } = await openVocabulary(
    options,
    'remove the model and add it again',
  );
  return new VocabularyPlanner({ weights, context_tokens, vocabulary: facts.vocabulary }, tokenizer, profile);
}

/** Checks a model's files without loading its weights. Throws as `openPlanner` does. */
export async function checkModel(options: OpenOptions): Promise<CheckedModel> {
  const planner = await openPlanner(options);
  try {
    return await planner.check();
  } finally {
    await planner.close();
  }
}

/**
 * Loads a model for as long as the engine is open, planner and weights together. Throws as `openPlanner` and
 * `DecisionPlanner.openEngine` do.
 */
export async function openEngine(options: OpenOptions): Promise<DecisionEngine> {
  const planner = await openPlanner(options);
  try {
    const engine = await planner.openEngine();
    return {
      facts: engine.facts,
      plan: (input) => planner.plan(input),
      evaluate: (plan, evaluation) => engine.evaluate(plan, evaluation),
      async close() {
        await Promise.all([engine.close(), planner.close()]);
      },
    };
  } catch (error) {
    await planner.close();
    throw error;
  }
}
