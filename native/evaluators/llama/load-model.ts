import type { LlamaModel, LlamaModelOptions } from 'node-llama-cpp';
import { errorMessage, excerpt } from '../../../src/errors/error-message.ts';
import { WeightsError } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';
import { WAITING_PLANS_MAX } from '../../plan-evaluator.ts';
import type { Weights } from '../../weights.ts';
import { computingThreads } from '../computing-threads.ts';
import { type LlamaBackend, llamaBackend } from './backend.ts';
import { LlamaEvaluator } from './llama-evaluator.ts';
import { LlamaTokenizer } from './llama-tokenizer.ts';

export interface LlamaEvaluatorOptions {
  readonly gpu: Gpu;
  /** Threads that compute; 0 or undefined leaves one core for the event loop. */
  readonly threads: number | undefined;
  /** The largest number of positions of a plan. */
  readonly context_tokens: number;
  /** The largest number of waiting plans before `EngineOverloaded`. */
  readonly queue_limit?: number | undefined;
  /** It saves memory on long contexts. Scores that are pinned to fractions of a logit need it off. */
  readonly flash_attention: 'auto' | false;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

function loadError(weights: Weights, backend: LlamaBackend, error: unknown): WeightsError {
  const reason = excerpt(backend.takeLoggedError() ?? errorMessage(error));
  return new WeightsError(
    `The model ${weights.first} could not be loaded (${reason}): give a complete GGUF file that this llama.cpp supports, and enough memory for it.`,
    { cause: error },
  );
}

/** Throws `WeightsError` if the model's answers would not be about the record. */
async function loadContext(
  { first }: Weights,
  model: LlamaModel,
  options: LlamaEvaluatorOptions,
): Promise<LlamaEvaluator> {
  const context = await model.createContext({
    sequences: 1,
    // node-llama-cpp never fills the last position.
    contextSize: options.context_tokens + 1,
    threads: computingThreads(options.threads).fewest,
    flashAttention: options.flash_attention,
    // Sliding-window models keep their whole prefix, so that a branch can be erased and the prefix stays.
    swaFullCache: true,
  });
  const device = model.llama.gpu === false ? 'cpu' : model.llama.gpu;
  const { context_tokens, queue_limit = WAITING_PLANS_MAX } = options;
  const evaluator = new LlamaEvaluator(context, context_tokens, device, queue_limit);
  // A model with encoder and decoder expects the record in its encoder, which gets nothing here.
  if (!model.fileInsights.hasEncoder && (await evaluator.keepsWhatItReads())) return evaluator;
  throw new WeightsError(
    `The model ${first} cannot be served (it is no decoder-only model, which keeps a record while it reads questions): give another model.`,
  );
}

async function loadModel(
  weights: Weights,
  backend: LlamaBackend,
  options: Omit<LlamaModelOptions, 'modelPath'>,
): Promise<LlamaModel> {
  backend.takeLoggedError();
  try {
    return await backend.llama.loadModel({ modelPath: weights.first, ...options });
  } catch (error) {
    throw loadError(weights, backend, error);
  }
}

/** Loads weights into an evaluator through node-llama-cpp's objects. Throws `WeightsError` if it cannot. */
export async function loadLlamaEvaluator(
  weights: Weights,
  options: LlamaEvaluatorOptions,
): Promise<LlamaEvaluator> {
  const backend = await llamaBackend(options.gpu);
  const { onProgress } = options;
  const model = await loadModel(
    weights,
    backend,
    onProgress === undefined ? {} : { onLoadProgress: onProgress },
  );
  try {
    return await loadContext(weights, model, options);
  } catch (error) {
    await model.dispose();
    throw error instanceof WeightsError ? error : loadError(weights, backend, error);
  }
}

/**
 * Loads the vocabulary of weights through node-llama-cpp's objects. `gpu` is the same as for evaluators, because a
 * process has one backend. Throws `WeightsError` if it cannot.
 */
export async function loadLlamaTokenizer(weights: Weights, gpu: Gpu): Promise<LlamaTokenizer> {
  return new LlamaTokenizer(
    await loadModel(weights, await llamaBackend(gpu), {
      vocabOnly: true,
      // The weights are not loaded, so their memory is not needed.
      gpuLayers: 0,
      ignoreMemorySafetyChecks: true,
    }),
  );
}
