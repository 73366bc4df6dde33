import { PlanRejected } from '../../native/engine.ts';
import type { JsonValue } from '../json/json-value.ts';
import { type Mode, type Question, scoreCount } from '../questions/question.ts';
import type { Clock } from '../time/clock.ts';
import type { EvalCase } from './cases.ts';
import type { MeasuredModel } from './measured-model.ts';
import { PROBES, probed } from './probes.ts';
import { type Random, shuffled } from './random.ts';
import type { ScoreEntry, ScoreFile, Variant } from './score-file.ts';
import { readStates, storedStates } from './stored-states.ts';

/** The progress of a run, in requests to the model. */
export interface RunProgress {
  readonly done: number;
  readonly total: number;
  /** The number of them that this process did itself; the rest were in the score file. */
  readonly done_now: number;
}

export interface RunOptions {
  /** The model, whose uncalibrated scores are stored. */
  readonly model: MeasuredModel;
  readonly mode: Mode;
  readonly file: ScoreFile;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** The number of records that are repeated with every change of `PROBES`. */
  readonly probed_records: number;
  /** True for a question whose hidden states are stored too, where the model has them; none by default. */
  readonly needsStates?: (question: Question) => boolean;
  readonly onProgress?: (progress: RunProgress) => void;
  /** Called between two requests; true stops the run. Finished requests are in the file. */
  readonly isStopped?: () => boolean;
}

/** One request to the model. */
interface Task {
  readonly subject: EvalCase;
  readonly variant: Variant;
  readonly state: JsonValue;
  readonly questions: readonly Question[];
}

/**
 * Returns the `limit` records of a run, in the order of its requests. The order is drawn, so that any
 * beginning of it is a fair sample of all sets.
 */
export function drawCases(
  cases: readonly EvalCase[],
  limit: number | undefined,
  random: Random,
): readonly EvalCase[] {
  return shuffled(cases, random).slice(0, limit);
}

/**
 * Sends the model all requests that the score file lacks, one after the other. Returns true when none is
 * left.
 */
export async function runCases(cases: readonly EvalCase[], options: RunOptions): Promise<boolean> {
  const tasks = cases.flatMap((subject, index) => tasksOf(subject, index < options.probed_records));
  const waiting = tasks.filter(({ subject, variant, questions }) =>
    lacks(options.file.get(subject.digest, variant), questions, options),
  );
  const before = tasks.length - waiting.length;
  let done_now = 0;
  const report = () => options.onProgress?.({ done: before + done_now, total: tasks.length, done_now });
  report();
  for (const task of waiting) {
    if (options.isStopped?.() ?? false) return false;
    await ask(task, options);
    done_now += 1;
    report();
  }
  return true;
}

/** Returns true if there is no entry, or if it lacks hidden states that are needed. */
function lacks(
  entry: ScoreEntry | undefined,
  questions: readonly Question[],
  { model, needsStates = () => false }: RunOptions,
): boolean {
  if (entry === undefined) return true;
  if (entry.scores === null || !model.facts.reads_states) return false;
  return questions.some((question, index) => {
    if (!needsStates(question)) return false;
    const stored = entry.states?.[index] ?? null;
    return stored === null || readStates(stored, scoreCount(question)) === null;
  });
}

function tasksOf(subject: EvalCase, with_probes: boolean): readonly Task[] {
  const original: Task = {
    subject,
    variant: 'original',
    state: subject.state,
    questions: subject.questions.map(({ question }) => question),
  };
  if (!with_probes) return [original];
  const changes = PROBES.flatMap((variant): Task[] => {
    const request = probed(variant, subject);
    return request === undefined
      ? []
      : [{ subject, variant, state: request.state, questions: request.questions }];
  });
  return [original, ...changes];
}

async function ask(task: Task, options: RunOptions): Promise<void> {
  const { model, mode, file, clock, needsStates = () => false } = options;
  const { subject, variant, state, questions } = task;
  const { digest } = subject;
  const started_ms = clock.monotonic_ms();
  try {
    const answer = await model.answer({ state, questions, mode }, (index) => {
      const question = questions[index];
      return question !== undefined && needsStates(question);
    });
    const { scores, states = [], input_tokens } = answer;
    const has_states = states.some((own) => own !== null);
    file.add({
      digest,
      variant,
      scores: scores.map((list) => [...list]),
      ...(has_states ? { states: states.map((own) => own && storedStates(own)) } : {}),
      input_tokens,
      latency_ms: clock.monotonic_ms() - started_ms,
    });
  } catch (error) {
    if (!(error instanceof PlanRejected)) throw error;
    file.add({ digest, variant, scores: null, input_tokens: 0, latency_ms: 0 });
  }
}
