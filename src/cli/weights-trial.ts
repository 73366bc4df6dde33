import { text } from 'node:stream/consumers';
import { type Static, Type } from '@sinclair/typebox';
import {
  type DecisionEngine,
  EVALUATOR_CHOICES,
  EvaluationFailed,
  GPUS,
  openEngine,
  PlanRejected,
  SetupError,
} from '../../native/engine.ts';
import { openOptions } from '../config/open-options.ts';
import { checkedJson } from '../json/checked-json.ts';
import { oneOf } from '../json/one-of.ts';
import { sendHealthProbe } from '../served-models/health-probe.ts';
import { CommandFailed } from './command-failed.ts';

/** The word that starts this program as a trial; not a command for operators. */
export const WEIGHTS_TRIAL = 'weights-trial';

/** The standard input of a trial: the settings with which a server loads. */
export const TrialRequest = Type.Object({
  /** An absolute path; null for the embedded weights. */
  model_path: Type.Union([Type.String(), Type.Null()]),
  context_tokens: Type.Union([Type.Integer(), Type.Null()]),
  gpu: oneOf(GPUS),
  evaluator: oneOf(EVALUATOR_CHOICES),
  deterministic: Type.Boolean(),
  threads: Type.Union([Type.Integer(), Type.Literal('auto')]),
  prefix_cache_megabytes: Type.Union([Type.Integer(), Type.Null()]),
});

/** The output of a trial, in one line; a refusal is a sentence for the operator. */
export const TrialReply = Type.Union([
  Type.Object({ refusal: Type.String() }),
  Type.Object({ weights_sha256: Type.String(), profile: Type.String(), context_tokens: Type.Integer() }),
]);

/**
 * Loads weights in this process, which was started for it, and sends them a health probe in both modes. Even
 * if they crash it, the starting process goes on.
 */
export async function runWeightsTrial(): Promise<void> {
  const request = checkedJson(TrialRequest, await text(process.stdin));
  if (request === undefined) throw new CommandFailed(`${WEIGHTS_TRIAL} is started by the program itself.`);
  const reply = await trial(request).catch((error: unknown): Static<typeof TrialReply> => {
    if (error instanceof CommandFailed) return { refusal: error.message };
    throw error;
  });
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

async function trial(request: Static<typeof TrialRequest>): Promise<Static<typeof TrialReply>> {
  const { model_path, context_tokens, threads, prefix_cache_megabytes, gpu, evaluator, deterministic } =
    request;
  const options = openOptions({
    gpu,
    evaluator,
    deterministic,
    model: model_path ?? undefined,
    threads,
    prefixCache: prefix_cache_megabytes ?? undefined,
  });
  const engine = await orFail(() => openEngine({ ...options, context_tokens: context_tokens ?? undefined }));
  try {
    const { facts } = engine;
    if (context_tokens !== null && context_tokens > facts.context_tokens) {
      throw new CommandFailed(
        `The model reads at most ${facts.context_tokens} tokens: give --context of at most that.`,
      );
    }
    if (facts.warning !== undefined) process.stderr.write(`${facts.warning}\n`);
    process.stderr.write(`Sending it a health probe by ${facts.profile} on ${facts.device}.\n`);
    await orFail(() => answerBothModes(engine));
    const { weights_sha256, profile } = facts;
    return { weights_sha256, profile, context_tokens: facts.context_tokens };
  } finally {
    await engine.close();
  }
}

async function answerBothModes(engine: DecisionEngine): Promise<void> {
  await sendHealthProbe(engine, 'fast');
  await sendHealthProbe(engine, 'consistent');
}

async function orFail<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SetupError) throw new CommandFailed(error.message, { cause: error });
    if (error instanceof PlanRejected || error instanceof EvaluationFailed) {
      throw new CommandFailed(`The model does not answer a health probe: ${error.message}`, {
        cause: error,
      });
    }
    throw error;
  }
}
