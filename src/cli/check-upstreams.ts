import { resolve } from 'node:path';
import { openScoringPlanner, SetupError } from '../../native/engine.ts';
import type { UpstreamPool, UpstreamVocabulary } from '../catalog/catalog-records.ts';
import { openOptions, vocabularyOptions } from '../config/open-options.ts';
import type { ModelConfig } from '../config/settings.ts';
import { errorMessage } from '../error-message.ts';
import { UpstreamFailed } from '../upstreams/upstream-failed.ts';
import { UpstreamModel } from '../upstreams/upstream-model.ts';
import { CommandFailed } from './command-failed.ts';

/** A server may load its model at the first question. */
const WAITING_MS = 120_000;

/** A model of the catalog, as far as its upstreams are asked for it. */
export interface AskedModel {
  readonly id: string;
  readonly upstreams: UpstreamPool;
  readonly context_tokens: number;
}

/** A vocabulary that plans can be made of, and how many tokens they may have. */
export interface CheckedVocabulary {
  readonly vocabulary: UpstreamVocabulary;
  readonly context_tokens: number;
}

/** Reads a vocabulary as a server with these settings does. Throws `CommandFailed` where a model cannot be asked by it. */
export async function checkVocabulary(
  given: string,
  config: Omit<ModelConfig, 'model'>,
  context_tokens?: number,
): Promise<CheckedVocabulary> {
  const path = resolve(given);
  try {
    const planner = await openScoringPlanner({ ...openOptions({ ...config, model: path }), context_tokens });
    await planner.close();
    if (context_tokens !== undefined && context_tokens > planner.context_tokens) {
      throw new CommandFailed(
        `The model reads at most ${planner.context_tokens} tokens: give --context of at most that.`,
      );
    }
    return {
      vocabulary: { path, sha256: planner.vocabulary_sha256, profile: planner.profile },
      context_tokens: planner.context_tokens,
    };
  } catch (error) {
    if (error instanceof SetupError) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

/**
 * Asks each upstream a small question, as a server would. Says on standard error which does not answer. Throws
 * `CommandFailed` where none does, or one wants another token: a server that is down comes back, and that one does not.
 */
export async function checkUpstreams(model: AskedModel, config: Omit<ModelConfig, 'model'>): Promise<void> {
  const { id, upstreams } = model;
  const failures = await upstreamFailures(model, config, WAITING_MS);
  for (const { message } of failures) process.stderr.write(`${message}\n`);
  if (failures.some(({ is_token_refused }) => is_token_refused)) {
    throw new CommandFailed(`An upstream of ${id} asks for a token, or for another one. Nothing was added.`);
  }
  if (failures.length === upstreams.addresses.length) {
    throw new CommandFailed(
      `No upstream of ${id} answers a small question. With --closed it is added all the same.`,
    );
  }
}

/** Why one member does not answer. */
export interface UpstreamProblem {
  readonly message: string;
  readonly is_token_refused: boolean;
}

/** Why members of the pool do not answer a small question, an entry for each that does not. */
export async function upstreamFailures(
  model: AskedModel,
  config: Omit<ModelConfig, 'model'>,
  waiting_ms: number,
): Promise<readonly UpstreamProblem[]> {
  const failures = await Promise.all(
    model.upstreams.addresses.map((address) => failureOf(model, address, config, waiting_ms)),
  );
  return failures.filter((failure) => failure !== null);
}

/** Why the upstream does not answer; null where it does. */
async function failureOf(
  { id, upstreams, context_tokens }: AskedModel,
  address: string,
  config: Omit<ModelConfig, 'model'>,
  waiting_ms: number,
): Promise<UpstreamProblem | null> {
  let problem: unknown;
  const model = new UpstreamModel(
    {
      id,
      context_tokens,
      input_price_micros_per_million_tokens: 0,
      upstreams: { ...upstreams, addresses: [address] },
    },
    {
      now_ms: () => performance.now(),
      openPlanner: (vocabulary, tokens) => openScoringPlanner(vocabularyOptions(vocabulary, tokens, config)),
      trial_ms: waiting_ms,
      onProblem: (error) => {
        problem = error;
      },
    },
  );
  try {
    await model.load();
    return null;
  } catch (error) {
    const cause = problem ?? error;
    return {
      message: errorMessage(cause),
      is_token_refused: cause instanceof UpstreamFailed && cause.is_token_refused,
    };
  } finally {
    await model.close();
  }
}
