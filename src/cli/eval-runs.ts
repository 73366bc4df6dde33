import { type Command, Option } from 'commander';
import { SetupError } from '../../native/engine.ts';
import { wholeNumberBetween } from '../config/setting.ts';
import { DATA_SETTINGS, MODEL_SETTINGS, type ModelConfig } from '../config/settings.ts';
import { CasesError, type EvalCase } from '../eval/cases.ts';
import type { MeasuredModel } from '../eval/measured-model.ts';
import { ProgressBar } from '../eval/progress.ts';
import { runCases } from '../eval/run.ts';
import { type ScoreFile, ScoreFileError } from '../eval/score-file.ts';
import type { FoldBy } from '../eval/temperature-fit.ts';
import type { Mode, Question } from '../questions/question.ts';
import { systemClock } from '../time/clock.ts';
import { type DataOptions, examplesHelp } from './command.ts';
import { inOneSentence } from './command-failed.ts';
import { addSettings, textBehindFlag } from './command-settings.ts';
import { interruptible } from './interruptible.ts';

const LIMIT_MAX = 1_000_000_000;
const DEFAULT_SEED = 1;
const DEFAULT_FOLDS = 5;
const FOLDS_MAX = 100;

/** The options of every command that sends the records of a cases file to a model. */
export interface CaseRunOptions extends DataOptions, ModelConfig {
  /** The file of the default model's weights in a service, where `--model` is the id of a model. */
  readonly servedModel?: string | undefined;
  readonly limit?: number;
  readonly seed: number;
}

/** The options that `tds eval` and `tds calibrate` have in common. */
export interface EvalRunOptions extends CaseRunOptions {
  readonly folds: number;
  readonly foldBy: FoldBy;
}

/** Adds the options of `CaseRunOptions`, with their help and examples. */
export function addCaseRunOptions(command: Command, examples: readonly string[]): Command {
  return addSettings(command, [...MODEL_SETTINGS, ...DATA_SETTINGS])
    .hook('preAction', (action) => {
      action.setOptionValue('servedModel', textBehindFlag(action, 'model') ?? undefined);
    })
    .option('--limit <n>', 'only this many records, drawn by the seed', wholeNumberBetween(1, LIMIT_MAX))
    .option(
      '--seed <n>',
      'seed of what is drawn: records, folds, resamples',
      wholeNumberBetween(0, 2 ** 32 - 1),
      DEFAULT_SEED,
    )
    .addHelpText(
      'after',
      '\n--model also takes the id of a model of the catalog ("tds model list"), with weights or upstreams. The default model then has the weights of TDS_MODEL, as in "tds serve".',
    )
    .addHelpText('after', examplesHelp(examples));
}

/** Adds the options of `EvalRunOptions`, with examples. */
export function addEvalRunOptions(command: Command, examples: readonly string[]): Command {
  return addCaseRunOptions(command, examples)
    .option(
      '--folds <n>',
      'parts, each of which is judged by a fit on the others',
      wholeNumberBetween(2, FOLDS_MAX),
      DEFAULT_FOLDS,
    )
    .addOption(
      new Option('--fold-by <unit>', 'what is kept together in a part')
        .choices(['set', 'record'])
        .default('set'),
    );
}

/**
 * Asks the model for the scores that the file lacks, with progress on standard error. Returns false after an
 * interrupt; finished scores are kept, and the exit code shows the signal.
 */
export async function scoreCases(
  cases: readonly EvalCase[],
  run: {
    readonly model: MeasuredModel;
    readonly mode: Mode;
    readonly file: ScoreFile;
    readonly probed_records: number;
    readonly needsStates?: (question: Question) => boolean;
  },
): Promise<boolean> {
  const bar = new ProgressBar(process.stderr, () => systemClock.monotonic_ms());
  const finished = await interruptible((isStopped) =>
    runCases(cases, {
      ...run,
      clock: systemClock,
      onProgress: (progress) => bar.show(progress),
      isStopped,
    }),
  );
  if (!finished)
    process.stderr.write('\nInterrupted; everything so far is kept. The same command goes on from here.\n');
  return finished;
}

/** Runs `work`, and turns errors of unusable files and weights into one sentence (`CommandFailed`). */
export function failingInOneSentence<Result>(work: () => Promise<Result>): Promise<Result> {
  return inOneSentence([CasesError, ScoreFileError, SetupError], work);
}
