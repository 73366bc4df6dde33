import type { Command } from 'commander';
import { type CalibrationFit, fitCalibration, fitTable } from '../eval/calibration-fit.ts';
import { scoredQuestions } from '../eval/collect.ts';
import { seededRandom } from '../eval/random.ts';
import { type CasesFile, readCases } from '../eval/read-cases.ts';
import { drawCases } from '../eval/run.ts';
import { openScores } from '../eval/workspace.ts';
import type { Mode } from '../questions/question.ts';
import { type ChosenModel, openChosenModel, requireUntuned } from './catalog-model.ts';
import { CommandFailed } from './command-failed.ts';
import { addEvalRunOptions, type EvalRunOptions, failingInOneSentence, scoreCases } from './eval-runs.ts';
import { printJson, printLine, printTable } from './output.ts';
import { writeCalibration } from './write-calibration.ts';

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
      'where the calibration goes (default: calibration.json beside the weights, or the catalog for a model of upstreams)',
    )
    .option('--work <directory>', 'folder of scores, shared with tds eval', 'evaluation')
    .option('--json', 'print JSON');
  addEvalRunOptions(command, [
    'tds calibrate src/eval/example-cases.jsonl --output calibration.json',
    'tds calibrate src/eval/example-cases.jsonl --model kev-4b',
  ]).action((cases_file: string, options: CalibrateOptions) =>
    failingInOneSentence(() => calibrate(cases_file, options)),
  );
}

async function calibrate(cases_file: string, options: CalibrateOptions): Promise<void> {
  const read = await readCases(cases_file);
  const model = await openChosenModel(options);
  try {
    requireUntuned(model, 'calibrate');
    const fast = await fitMode('fast', model, cases_file, read, options);
    const consistent = fast && (await fitMode('consistent', model, cases_file, read, options));
    if (fast === undefined || consistent === undefined) return;
    const { profile, weights_sha256 } = model.facts;
    const fitted = {
      temperatures: { fast: fast.temperatures, consistent: consistent.temperatures },
      fitted_on: { fast: fast.fitted_on, consistent: consistent.fitted_on },
    };
    const calibration = { profile, weights_sha256, ...fitted };
    const path = options.output ?? (await model.keepCalibration(fitted));
    if (options.output !== undefined) await writeCalibration(options.output, calibration);
    if (options.json) {
      printJson({ calibration, out_of_fold: { fast: fast.out_of_fold, consistent: consistent.out_of_fold } });
      return;
    }
    print(fast, consistent);
    printLine(`\nCalibration: ${path}`);
  } finally {
    await model.close();
  }
}

/** Returns the fit for one mode, or undefined when it was interrupted. */
async function fitMode(
  mode: Mode,
  model: ChosenModel,
  cases_file: string,
  read: CasesFile,
  options: CalibrateOptions,
): Promise<CalibrationFit | undefined> {
  const cases = drawCases(read.cases, options.limit, seededRandom(options.seed));
  using file = openScores({ directory: options.work, cases_file }, model, mode);
  if (!(await scoreCases(cases, { model, mode, file, probed_records: 0 }))) return undefined;
  const questions = scoredQuestions(cases, file);
  if (questions.length === 0) throw new CommandFailed('No record of the cases fits into the model.');
  return fitCalibration(questions, {
    cases_sha256: read.sha256,
    folds: options.folds,
    fold_by: options.foldBy,
    random: seededRandom(options.seed),
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
  }
}
