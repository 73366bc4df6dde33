import { resolve } from 'node:path';
import type { Static } from '@sinclair/typebox';
import { EMBEDDED_WEIGHTS, SetupError, weightsBytes } from '../../native/engine.ts';
import type { ModelConfig } from '../config/settings.ts';
import { IS_UNPACKED, projectFile } from '../files/project-root.ts';
import { checkedJson } from '../json/checked-json.ts';
import { EMBEDDED, type ModelWeights } from '../store/catalog-records.ts';
import { MS_PER_S } from '../time/clock.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';
import { exitCodeOf } from './interruptible.ts';
import { TrialReply, type TrialRequest, WEIGHTS_TRIAL } from './weights-trial.ts';

/** Weights that have answered, and their context in tokens. */
export interface CheckedWeights {
  readonly weights: ModelWeights;
  readonly context_tokens: number;
}

/** The options of a check of weights. */
export interface CheckOptions {
  /** The required context of the model; its largest when undefined. */
  readonly context_tokens?: number | undefined;
  /** True hides the progress of the trial on standard error. */
  readonly is_silent?: boolean;
  /** The time after which a running trial is ended; by default it depends on the size of the weights. */
  readonly deadline_ms?: number;
}

/** The time to compile the addon and to start a device. */
const DEADLINE_MIN_MS = 300 * MS_PER_S;
/** The speed of a slow disk, and of the slowest useful device. */
const BYTES_PER_MS_MIN = 5_000;

/**
 * Loads the weights as a server with these settings does, and sends them a health probe in both modes. This
 * runs in a process of its own, because llama.cpp ends its process over some files. Throws `CommandFailed`
 * with one sentence where a server could not serve them.
 */
export async function checkWeights(
  given: string,
  config: Omit<ModelConfig, 'model'>,
  { context_tokens, is_silent = false, deadline_ms }: CheckOptions = {},
): Promise<CheckedWeights> {
  const weights = given === EMBEDDED ? EMBEDDED : resolve(given);
  if (!is_silent) {
    process.stderr.write(weights === EMBEDDED ? 'Loading the embedded weights.\n' : `Loading ${weights}.\n`);
  }
  const path = weights === EMBEDDED ? EMBEDDED_WEIGHTS : weights;
  const request: Static<typeof TrialRequest> = {
    model_path: weights === EMBEDDED ? null : weights,
    context_tokens: context_tokens ?? null,
    gpu: config.gpu,
    evaluator: config.evaluator,
    deterministic: config.deterministic,
    threads: config.threads,
    prefix_cache_megabytes: config.prefixCache ?? null,
  };
  const reply = await runTrial(path, request, is_silent, deadline_ms ?? (await deadlineFor(path)));
  if ('refusal' in reply) throw new CommandFailed(reply.refusal);
  const { weights_sha256, profile } = reply;
  return { weights: { weights, weights_sha256, profile }, context_tokens: reply.context_tokens };
}

async function deadlineFor(path: string): Promise<number> {
  const bytes = await inOneSentence([SetupError], () => weightsBytes(path));
  return DEADLINE_MIN_MS + Math.ceil(bytes / BYTES_PER_MS_MIN);
}

/** Throws `CommandFailed` when the process gives no result, because of a crash or the deadline. */
async function runTrial(
  path: string,
  request: Static<typeof TrialRequest>,
  is_silent: boolean,
  deadline_ms: number,
): Promise<Static<typeof TrialReply>> {
  const program = IS_UNPACKED ? [process.execPath] : [process.execPath, projectFile('src/main.ts')];
  const child = Bun.spawn([...program, WEIGHTS_TRIAL], {
    // Otherwise ggml starts a debugger on the process that it ends.
    env: { ...process.env, GGML_NO_BACKTRACE: '1' },
    stdin: new Blob([JSON.stringify(request)]),
    stdout: 'pipe',
    stderr: is_silent ? 'ignore' : 'inherit',
  });
  let is_late = false;
  const deadline = setTimeout(() => {
    is_late = true;
    child.kill('SIGKILL');
  }, deadline_ms);
  const [printed] = await endedWithThisProcess(child, () =>
    Promise.all([new Response(child.stdout).text(), child.exited]),
  );
  clearTimeout(deadline);
  const reply = checkedJson(TrialReply, printed);
  if (reply !== undefined) return reply;
  const late = is_late ? `it had not answered after ${Math.round(deadline_ms / MS_PER_S)} s` : null;
  const by = child.signalCode ?? `an error, with code ${child.exitCode}`;
  const end = `the process that loaded it was ended by ${by}`;
  // The system ends a trial before any other process (`beEndedFirst`).
  if (late === null && by === 'SIGKILL') {
    throw new CommandFailed(
      `The model ${path} cannot be served (${end}, probably for lack of memory): make room, or give a smaller model.`,
    );
  }
  throw new CommandFailed(
    `The model ${path} cannot be served (${late ?? end}): download it again, or give another model.`,
  );
}

/**
 * Awaits `work`, and kills the child where this process ends before: one that is busy hears no signal of the terminal.
 * A server has listeners of its own, which decide when it ends.
 */
async function endedWithThisProcess<Result>(
  child: Bun.Subprocess,
  work: () => Promise<Result>,
): Promise<Result> {
  const kill = () => child.kill('SIGKILL');
  const listeners = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    .filter((signal) => process.listenerCount(signal) === 0)
    .map((signal) => ({ signal, end: () => process.exit(exitCodeOf(signal)) }));
  process.on('exit', kill);
  for (const { signal, end } of listeners) process.on(signal, end);
  try {
    return await work();
  } finally {
    process.off('exit', kill);
    for (const { signal, end } of listeners) process.off(signal, end);
  }
}
