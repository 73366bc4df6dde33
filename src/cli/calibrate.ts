import type { Command } from 'commander';
import { SetupError } from '../../native/engine.ts';
import { type CalibrationFit, evenTypes, fitCalibration, fitTable } from '../eval/calibration-fit.ts';
import type { EvalCase } from '../eval/cases.ts';
import { scoredQuestions } from '../eval/collect.ts';
import { seededRandom } from '../eval/random.ts';
import { type CasesFile, readCases } from '../eval/read-cases.ts';
import { drawCases } from '../eval/run.ts';
import { QUESTIONS_MIN } from '../eval/temperature-fit.ts';
import { openScores } from '../eval/workspace.ts';
import { type Mode, QUESTION_TYPES } from '../questions/question.ts';
import type { TypeTemperatures } from '../questions/temperatures.ts';
import { type ChosenModel, type KeepCalibration, openChosenModel, requireUntuned } from './catalog-model.ts';
import { CommandFailed } from './command-failed.ts';
import { addEvalRunOptions, type EvalRunOptions, failingInOneSentence, scoreCases } from './eval-runs.ts';
import { printJson, printLine, printTable } from './output.ts';
import { writeCalibration } from './write-calibration.ts';
import { requireWritable } from './write-whole-file.ts';

interface CalibrateOptions extends EvalRunOptions {
  readonly output?: string;
  readonly work: string;
  readonly json?: true;
}

/** Adds `tds calibrate`. */
export function registerCalibrate(program: Command): void {
  const command = program
    .command('calibrate <cases>')
    .description(
      'fit temperatures, so that probabilities are as true as they say, on records whose answers are known',
    )
    .option(
      '--output <file>',
      'where the calibration goes (default: NAME.calibration.json beside the weights NAME.gguf, or the catalog for a model of upstreams)',
    )
    .option('--work <directory>', 'folder of scores, shared with tds eval', 'evaluation')
    .option('--json', 'print JSON');
  addEvalRunOptions(command, [
    'tds calibrate labels.jsonl --output calibration.json',
    'tds calibrate labels.jsonl --model kev-4b',
  ]).action((cases_file: string, options: CalibrateOptions) =>
    failingInOneSentence(() => calibrate(cases_file, options)),
  );
}

async function calibrate(cases_file: string, options: CalibrateOptions): Promise<void> {
  const read = await readCases(cases_file);
  const cases = drawCases(read.cases, options.limit, seededRandom(options.seed));
  const model = await openChosenModel(options);
  try {
    requireUntuned(model, 'calibrate');
    const keep = await placeOf(model, options.output);
    // Before the model answers anything, which takes long.
    requireLabels(cases);
    const drawn = { sha256: read.sha256, cases };
    const fast = await fitMode('fast', model, cases_file, drawn, options);
    const consistent = fast && (await fitMode('consistent', model, cases_file, drawn, options));
    if (fast === undefined || consistent === undefined) return;
    if ([...fast.out_of_fold, ...consistent.out_of_fold].length === 0) {
      throw tooFewLabels();
    }
    const { profile, weights_sha256 } = model.facts;
    const fitted = {
      temperatures: { fast: fast.temperatures, consistent: consistent.temperatures },
      fitted_on: { fast: fast.fitted_on, consistent: consistent.fitted_on },
    };
    const calibration = { profile, weights_sha256, ...fitted };
    const { place, needs_reload } = await keep(fitted);
    if (options.json) {
      printJson({
        calibration,
        out_of_fold: { fast: fast.out_of_fold, consistent: consistent.out_of_fold },
        kept: { fast: fast.kept, consistent: consistent.kept },
      });
      return;
    }
    print(fast, consistent);
    printLine(`\nCalibration: ${place}`);
    if (needs_reload) printLine(`A running service takes it by "tds model reload ${model.id ?? 'ID'}".`);
  } finally {
    await model.close();
  }
}

function tooFewLabels(): CommandFailed {
  return new CommandFailed(
    `No type of question has ${QUESTIONS_MIN} labels, so the calibration stays as it is: give more.`,
  );
}

/** Throws `CommandFailed` where no type of question has enough labels, even if all records fit into the model. */
function requireLabels(cases: readonly EvalCase[]): void {
  const types = cases.flatMap(({ questions }) => questions.map(({ question }) => question.type));
  const has_enough = QUESTION_TYPES.some(
    (each) => types.filter((type) => type === each).length >= QUESTIONS_MIN,
  );
  if (!has_enough) throw tooFewLabels();
}

/**
 * Resolves with what stores the calibration and resolves with its place. Throws `CommandFailed` where it could not be
 * written, or would not stay.
 */
async function placeOf(
  { calibrationKeeper, facts: { profile, weights_sha256 } }: ChosenModel,
  output: string | undefined,
): Promise<KeepCalibration> {
  if (output !== undefined) {
    await requireWritable(output);
    return async (fitted) => {
      await writeCalibration(output, { profile, weights_sha256, ...fitted });
      // No service looks for it there.
      return { place: output, needs_reload: false };
    };
  }
  if (calibrationKeeper !== null) return await calibrationKeeper();
  throw new CommandFailed(
    'The embedded weights keep no other calibration than theirs: copy their folder, and calibrate and serve the copy with --model, or name a file with --output.',
  );
}

/** Returns the fit for one mode, or undefined when it was interrupted. */
async function fitMode(
  mode: Mode,
  model: ChosenModel,
  cases_file: string,
  { cases, sha256 }: CasesFile,
  options: CalibrateOptions,
): Promise<CalibrationFit | undefined> {
  using file = openScores({ directory: options.work, cases_file }, model, mode);
  if (!(await scoreCases(cases, { model, mode, file, probed_records: 0 }))) return undefined;
  const questions = scoredQuestions(cases, file);
  if (questions.length === 0) throw new CommandFailed('No record of the cases fits into the model.');
  return fitCalibration(questions, {
    present: await presentTemperatures(model, mode),
    cases_sha256: sha256,
    folds: options.folds,
    fold_by: options.foldBy,
    random: seededRandom(options.seed),
  });
}

/** Returns the present temperatures; undefined also for a calibration that cannot be used, which is to be replaced. */
async function presentTemperatures(model: ChosenModel, mode: Mode): Promise<TypeTemperatures | undefined> {
  return await model.temperatures(mode).catch((error: unknown) => {
    if (!(error instanceof SetupError)) throw error;
    return undefined;
  });
}

function print(fast: CalibrationFit, consistent: CalibrationFit): void {
  for (const [mode, fit] of [
    ['fast', fast],
    ['consistent', consistent],
  ] as const) {
    printLine(`\nMode ${mode}, before and after calibration, each question by a fit that it had no part in`);
    const [headings = [], ...rows] = fitTable(fit);
    printTable(headings, rows, 'None.');
    const even = evenTypes(fit);
    if (even.length > 0) {
      printLine(
        `Types with a temperature at its bound: ${even.join(', ')}. The model’s scores tell nothing of these answers, and with this calibration those to all other questions of the type are nearly even too. Try "tds tune" on these questions instead.`,
      );
    }
    if (fit.kept.length > 0) {
      printLine(
        `Types with fewer than ${QUESTIONS_MIN} labels, whose temperatures stay as they are: ${fit.kept.join(', ')}.`,
      );
    }
  }
  if (![fast, consistent].some(({ out_of_fold }) => out_of_fold.some(({ after }) => after === null))) return;
  printLine('\nA dash: all questions of the type are in one set, so none is unseen. Give --fold-by record.');
}
