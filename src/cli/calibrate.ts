import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import {
  type Calibration,
  calibrationPath,
  type DecisionEngine,
  EMBEDDED_WEIGHTS,
} from '../../native/engine.ts';
import { type CalibrationFit, fitCalibration, fitTable } from '../eval/calibration-fit.ts';
import { scoredQuestions } from '../eval/collect.ts';
import { seededRandom } from '../eval/random.ts';
import { type CasesFile, readCases } from '../eval/read-cases.ts';
import { drawCases } from '../eval/run.ts';
import { openScores } from '../eval/workspace.ts';
import type { Mode } from '../questions/question.ts';
import { CommandFailed } from './command-failed.ts';
import {
  addEvaluationOptions,
  type EvaluationOptions,
  failingInOneSentence,
  openUncalibrated,
  scoreCases,
} from './evaluation.ts';
import { printJson, printLine, printTable } from './output.ts';

interface CalibrateOptions extends EvaluationOptions {
  readonly output?: string;
  readonly work: string;
  readonly json?: true;
}

/** `tds calibrate` */
export function registerCalibrate(program: Command): void {
  const command = program
    .command('calibrate <cases>')
    .description(
      'fit temperatures, so that probabilities are as true as they say, on records whose answers are known',
    )
    .option('--output <file>', 'where the calibration goes (default: calibration.json beside the weights)')
    .option('--work <directory>', 'folder of scores, shared with tds eval', 'evaluation')
    .option('--json', 'print JSON');
  addEvaluationOptions(command)
    .addHelpText(
      'after',
      '\nExample:\n  $ tds calibrate src/eval/example-cases.jsonl --output calibration.json',
    )
    .action((cases_file: string, options: CalibrateOptions) =>
      failingInOneSentence(() => calibrate(cases_file, options)),
    );
}

async function calibrate(cases_file: string, options: CalibrateOptions): Promise<void> {
  const read = await readCases(cases_file);
  const engine = await openUncalibrated(options);
  try {
    const fast = await fitMode('fast', engine, cases_file, read, options);
    const consistent = fast && (await fitMode('consistent', engine, cases_file, read, options));
    if (fast === undefined || consistent === undefined) return;
    const { profile, weights_sha256 } = engine.facts;
    const calibration: Calibration = {
      profile,
      weights_sha256,
      temperatures: { fast: fast.temperatures, consistent: consistent.temperatures },
      fitted_on: { fast: fast.fitted_on, consistent: consistent.fitted_on },
    };
    const path = options.output ?? calibrationPath(options.model ?? EMBEDDED_WEIGHTS);
    await write(path, calibration);
    if (options.json) {
      printJson({ calibration, out_of_fold: { fast: fast.out_of_fold, consistent: consistent.out_of_fold } });
      return;
    }
    print(fast, consistent);
    printLine(`\nCalibration: ${path}`);
  } finally {
    await engine.close();
  }
}

/** The fit for one mode, or undefined when it was interrupted. */
async function fitMode(
  mode: Mode,
  engine: DecisionEngine,
  cases_file: string,
  read: CasesFile,
  options: CalibrateOptions,
): Promise<CalibrationFit | undefined> {
  const cases = drawCases(read.cases, options.limit, seededRandom(options.seed));
  const file = openScores({ directory: options.work, cases_file }, engine, mode);
  try {
    if (!(await scoreCases(cases, { engine, mode, file, probed_records: 0 }))) return undefined;
    const questions = scoredQuestions(cases, file);
    if (questions.length === 0) throw new CommandFailed('No record of the cases fits into the model.');
    return fitCalibration(questions, {
      cases_sha256: read.sha256,
      folds: options.folds,
      fold_by: options.foldBy,
      random: seededRandom(options.seed),
    });
  } finally {
    file.close();
  }
}

/** Writes a file that appears only when it is whole: a half calibration would keep the model from loading. */
async function write(path: string, calibration: Calibration): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  try {
    await writeFile(partial, `${JSON.stringify(calibration, null, 2)}\n`);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw new CommandFailed(`${path} cannot be written: name another file with --output.`, { cause: error });
  }
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
