import { resolve } from 'node:path';
import { openScoringPlanner, SetupError } from '../../native/engine.ts';
import { openOptions, vocabularyOptions } from '../config/open-options.ts';
import type { ModelConfig } from '../config/settings.ts';
import { errorMessage } from '../errors/error-message.ts';
import type { UpstreamPool, UpstreamVocabulary } from '../store/catalog-records.ts';
import { MS_PER_S } from '../time/clock.ts';
import { UpstreamFailed } from '../upstreams/upstream-failed.ts';
import { UpstreamModel } from '../upstreams/upstream-model.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';

/** A server may load its model at the first question. */
const WAITING_MS = 120_000;
/** The time after which the person at the terminal is told what is waited for. */
const TELL_AFTER_MS = 5_000;

/** The fields of a model for questions to its upstreams. */
export interface AskedModel {
  readonly id: string;
  readonly upstreams: UpstreamPool;
  readonly context_tokens: number;
}

/** A vocabulary that plans can be made with, and their most tokens. */
export interface CheckedVocabulary {
  readonly vocabulary: UpstreamVocabulary;
  readonly context_tokens: number;
}

/**
 * Reads a vocabulary as a server with these settings does. Throws `CommandFailed` where it cannot be used.
 */
export async function checkVocabulary(
  given: string,
  config: Omit<ModelConfig, 'model'>,
  context_tokens?: number,
): Promise<CheckedVocabulary> {
  const path = resolve(given);
  return await inOneSentence([SetupError], async () => {
    const planner = await openScoringPlanner({ ...openOptions({ ...config, model: path }), context_tokens });
    await planner.close();
    if (context_tokens !== undefined && context_tokens > planner.context_tokens) {
      throw new CommandFailed(
        `The model reads at most ${planner.context_tokens} tokens: give --context of at most that.`,
      );
    }
    if (planner.warning !== undefined) process.stderr.write(`${planner.warning}\n`);
    return {
      vocabulary: { path, sha256: planner.vocabulary_sha256, profile: planner.profile },
      context_tokens: planner.context_tokens,
    };
  });
}

/**
 * Sends each upstream a health probe, as a server would, and names those that fail on standard error. Throws
 * `CommandFailed` where all fail, or one refuses the token: a server that is down may return, but a wrong
 * token stays wrong. After five seconds it names those it still waits for.
 */
export async function checkUpstreams(model: AskedModel, config: Omit<ModelConfig, 'model'>): Promise<void> {
  const { id, upstreams } = model;
  const waiting = new Set(upstreams.addresses);
  const timer = setTimeout(() => {
    const addresses = [...waiting].join(', ');
    process.stderr.write(
      `Waiting for ${addresses}: a server may be loading its model, and has ${WAITING_MS / MS_PER_S} seconds.\n`,
    );
  }, TELL_AFTER_MS);
  const failures = await upstreamFailures(model, config, WAITING_MS, (address) => {
    waiting.delete(address);
  }).finally(() => clearTimeout(timer));
  for (const { message } of failures) process.stderr.write(`${message}\n`);
  if (failures.some(({ is_token_refused }) => is_token_refused)) {
    throw new CommandFailed(`An upstream of ${id} asks for a token, or for another one. Nothing was added.`);
  }
  if (failures.length === upstreams.addresses.length) {
    throw new CommandFailed(
      `No upstream of ${id} answers a health probe. With --closed it is added all the same.`,
    );
  }
}

/** The reason why a member does not answer. */
export interface UpstreamProblem {
  readonly message: string;
  readonly is_token_refused: boolean;
}

/**
 * Returns the members that do not answer a health probe, with the reasons. `onDone` gets the address of each
 * that has been asked.
 */
export async function upstreamFailures(
  model: AskedModel,
  config: Omit<ModelConfig, 'model'>,
  waiting_ms: number,
  onDone: (address: string) => void = () => {},
): Promise<readonly UpstreamProblem[]> {
  const failures = await Promise.all(
    model.upstreams.addresses.map(async (address) => {
      const failure = await failureOf(model, address, config, waiting_ms);
      onDone(address);
      return failure;
    }),
  );
  return failures.filter((failure) => failure !== null);
}

/** Returns the reason why the upstream does not answer, or null. */
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
      // One that is drained gets no requests of clients, but can be asked all the same.
      upstreams: { ...upstreams, addresses: [address], draining: [] },
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
