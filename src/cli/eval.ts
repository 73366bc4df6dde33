import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { wholeNumberBetween } from '../config/setting.ts';
import { seededRandom } from '../eval/random.ts';
import { readCases } from '../eval/read-cases.ts';
import { type EvalReport, evalReport } from '../eval/report.ts';
import { htmlReport } from '../eval/report-html.ts';
import {
  ABSTAINING_TITLE,
  abstainingTable,
  setTable,
  stabilityTable,
  summaryLines,
  type Table,
  typeTable,
} from '../eval/report-text.ts';
import { drawCases } from '../eval/run.ts';
import { servedScores } from '../eval/served-scores.ts';
import { openScores, workspacePath } from '../eval/workspace.ts';
import { MODES, type Mode, type Question } from '../questions/question.ts';
import { systemClock } from '../time/clock.ts';
import { type ChosenModel, openChosenModel } from './catalog-model.ts';
import { CommandFailed } from './command-failed.ts';
import { addEvalRunOptions, type EvalRunOptions, failingInOneSentence, scoreCases } from './eval-runs.ts';
import { printJson, printLine, printTable } from './output.ts';

const DEFAULT_PROBED_RECORDS = 200;
const PROBED_RECORDS_MAX = 1_000_000_000;
/** The draws for every confidence interval. */
const RESAMPLES = 1_000;

interface EvalOptions extends EvalRunOptions {
  readonly mode: Mode;
  readonly probes: number;
  readonly output: string;
  readonly json?: true;
}

/** Adds `tds eval`. */
export function registerEval(program: Command): void {
  const command = program
    .command('eval <cases>')
    .description('measure a model on records whose answers are known (JSON lines, also .gz and .xz)')
    .addOption(new Option('--mode <mode>', 'how records are read').choices(MODES).default('fast'))
    .option(
      '--probes <n>',
      'ask this many records again with changes that should not matter',
      wholeNumberBetween(0, PROBED_RECORDS_MAX),
      DEFAULT_PROBED_RECORDS,
    )
    .option(
      '--output <directory>',
      'folder for scores and reports; an interrupted run goes on from there',
      'evaluation',
    )
    .option('--json', 'print JSON');
  addEvalRunOptions(command, [
    'tds eval cases.jsonl --mode consistent',
    'tds eval cases.jsonl --model kev-4b',
  ]).action((cases_file: string, options: EvalOptions) =>
    failingInOneSentence(() => measure(cases_file, options)),
  );
}

async function measure(cases_file: string, options: EvalOptions): Promise<void> {
  const read = await readCases(cases_file);
  const cases = drawCases(read.cases, options.limit, seededRandom(options.seed));
  const model = await openChosenModel(options);
  try {
    const report = await scoredReport(model, { cases_file, options, cases, read });
    if (report === undefined) return;
    await writeReports(report, cases_file, options);
    if (options.json) printJson(report);
    else printReport(report, cases_file, options);
  } finally {
    await model.close();
  }
}

/** Returns the report, or undefined when the run was interrupted. */
async function scoredReport(
  model: ChosenModel,
  { cases_file, options, cases, read }: DrawnCases,
): Promise<EvalReport | undefined> {
  const { mode } = options;
  // First of all, so that a calibration of other weights is refused before the long part.
  const temperatures = await model.temperatures(mode);
  using file = openScores({ directory: options.output, cases_file }, model, mode);
  const needsStates = (question: Question) => model.tuning?.needsStates(question, mode) ?? false;
  const run = { model, mode, file, probed_records: options.probes, needsStates };
  if (!(await scoreCases(cases, run))) return undefined;
  return evalReport({
    created: new Date(systemClock.now_ms()).toISOString(),
    cases_file,
    cases_sha256: read.sha256,
    records: read.cases.length,
    cases,
    file,
    model: model.facts,
    mode,
    tuned: model.tuning !== null,
    served: servedScores({ mode, temperatures, tuning: model.tuning }),
    seed: options.seed,
    folds: options.folds,
    fold_by: options.foldBy,
    resamples: RESAMPLES,
  });
}

interface DrawnCases {
  readonly cases_file: string;
  readonly options: EvalOptions;
  readonly cases: ReturnType<typeof drawCases>;
  readonly read: Awaited<ReturnType<typeof readCases>>;
}

async function writeReports(report: EvalReport, cases_file: string, options: EvalOptions): Promise<void> {
  const workspace = { directory: options.output, cases_file };
  const json = workspacePath(workspace, options.mode, 'json');
  try {
    await writeFile(json, `${JSON.stringify(report, null, 2)}\n`);
    await writeFile(workspacePath(workspace, options.mode, 'html'), htmlReport(report));
  } catch (error) {
    throw new CommandFailed(`${json} cannot be written: name another folder with --output.`, {
      cause: error,
    });
  }
}

function printReport(report: EvalReport, cases_file: string, options: EvalOptions): void {
  const show = (title: string, [headings = [], ...rows]: Table) => {
    printLine(`\n${title}`);
    printTable(headings, rows, 'None.');
  };
  show('By set', setTable(report));
  show('By question type, with 95% intervals', typeTable(report));
  show(ABSTAINING_TITLE, abstainingTable(report));
  show('Steadiness', stabilityTable(report));
  printLine('');
  for (const line of summaryLines(report)) printLine(line);
  const html = workspacePath({ directory: options.output, cases_file }, options.mode, 'html');
  printLine(`Report with diagrams: ${html}`);
}
