import { resolve } from 'node:path';
import {
  type DecisionEngine,
  EvaluationFailed,
  openEngine,
  PlanRejected,
  SetupError,
} from '../../native/engine.ts';
import { EMBEDDED, type ModelWeights } from '../catalog/catalog-records.ts';
import { openOptions } from '../config/open-options.ts';
import type { ModelConfig } from '../config/settings.ts';
import { askSmallQuestion } from '../models/small-question.ts';
import { CommandFailed } from './command-failed.ts';

/** Weights that have answered, and how many tokens they read. */
export interface CheckedWeights {
  readonly weights: ModelWeights;
  readonly context_tokens: number;
}

/**
 * Loads the weights as a server with these settings does, and asks them a small question in both modes. Says on
 * standard error how far it is. Throws `CommandFailed` with one sentence where a server could not serve them.
 */
export async function checkWeights(
  given: string,
  config: Omit<ModelConfig, 'model'>,
  context_tokens?: number,
): Promise<CheckedWeights> {
  const weights = given === EMBEDDED ? EMBEDDED : resolve(given);
  const model_path = weights === EMBEDDED ? undefined : weights;
  progress(weights === EMBEDDED ? 'Loading the embedded weights.' : `Loading ${weights}.`);
  const engine = await orFail(() =>
    openEngine({ ...openOptions({ ...config, model: model_path }), context_tokens }),
  );
  try {
    const { facts } = engine;
    if (context_tokens !== undefined && context_tokens > facts.context_tokens) {
      throw new CommandFailed(
        `The model reads at most ${facts.context_tokens} tokens: give --context of at most that.`,
      );
    }
    progress(`Asking it a small question by ${facts.profile} on ${facts.device}.`);
    await orFail(() => answerBothModes(engine));
    const { weights_sha256, profile } = facts;
    return { weights: { weights, weights_sha256, profile }, context_tokens: facts.context_tokens };
  } finally {
    await engine.close();
  }
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function answerBothModes(engine: DecisionEngine): Promise<void> {
  await askSmallQuestion(engine, 'fast');
  await askSmallQuestion(engine, 'consistent');
}

async function orFail<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SetupError) throw new CommandFailed(error.message, { cause: error });
    if (error instanceof PlanRejected || error instanceof EvaluationFailed) {
      throw new CommandFailed(`The model does not answer a small question: ${error.message}`, {
        cause: error,
      });
    }
    throw error;
  }
}
