import { type Command, Option } from 'commander';
import { ProgressBar } from '../eval/progress.ts';
import { seededRandom } from '../eval/random.ts';
import { type CasesFile, readCases } from '../eval/read-cases.ts';
import { drawCases } from '../eval/run.ts';
import {
  conflictCount,
  fitCount,
  hashKeyOf,
  type ModeLabels,
  type ModeTuning,
  modeLabels,
  tuneModes,
  tuningEntries,
  tuningTable,
  vectorCandidates,
} from '../eval/tuning-fit.ts';
import { openScores } from '../eval/workspace.ts';
import { MODES, type Mode } from '../questions/question.ts';
import { systemClock } from '../time/clock.ts';
import { partsOf } from '../tuning/correction.ts';
import { writeTuning } from '../tuning/tuning-file.ts';
import { type ChosenModel, openChosenModel, requireUntuned } from './catalog-model.ts';
import { CommandFailed } from './command-failed.ts';
import { addCaseRunOptions, type CaseRunOptions, failingInOneSentence, scoreCases } from './eval-runs.ts';
import { interruptible } from './interruptible.ts';
import { printJson, printLine, printTable } from './output.ts';
import { requireWritable, writeWholeFile } from './write-whole-file.ts';

const BOTH = 'both';

interface TuneOptions extends CaseRunOptions {
  readonly mode: Mode | typeof BOTH;
  readonly output: string;
  readonly work: string;
  readonly json?: true;
}

/** The error of a fit that was told to stop. */
class FittingStopped extends Error {
  override readonly name = 'FittingStopped';
}

/** Adds `tds tune`. */
export function registerTune(program: Command): void {
  const command = program
    .command('tune <cases>')
    .description(
      'fit corrections of a model’s answers to questions on records whose answers are known, and say what each is worth',
    )
    .requiredOption('--output <file>', 'where the corrections go, for "tds model add --tuning"')
    .addOption(
      new Option(
        '--mode <mode>',
        'the mode whose answers are corrected; requests in another get the model’s own',
      )
        .choices([...MODES, BOTH])
        .default('fast' satisfies Mode),
    )
    .option('--work <directory>', 'folder of scores, shared with tds eval', 'evaluation')
    .option('--json', 'print JSON');
  addCaseRunOptions(command, [
    'tds tune labels.jsonl --output support.tuning',
    'tds tune labels.jsonl --model kev-4b --output support.tuning',
  ]).action((cases_file: string, options: TuneOptions) =>
    failingInOneSentence(() => tune(cases_file, options)),
  );
}

async function tune(cases_file: string, options: TuneOptions): Promise<void> {
  const read = await readCases(cases_file);
  // Before the fit, which takes minutes.
  await requireWritable(options.output);
  const model = await openChosenModel(options);
  try {
    requireUntuned(model, 'tune');
    const labels = await labelsOf(model, cases_file, read, options);
    const tuned = labels === undefined ? undefined : await fitted(labels, options);
    if (tuned === undefined) return;
    const entries = tuningEntries(tuned);
    if (options.json) printJson(tuned.map(summary));
    else print(tuned);
    if (entries.length === 0) {
      throw new CommandFailed(
        'No correction is better than the model as it is, so no file was written: give more labels.',
      );
    }
    const { profile, weights_sha256 } = model.facts;
    const { seed } = options;
    const header = {
      weights_sha256,
      profile,
      model: model.id,
      hash_key: hashKeyOf(read.sha256, seed),
      fitted_on: { cases_sha256: read.sha256, records: read.cases.length, seed },
    };
    await writeWholeFile(options.output, writeTuning({ header, entries }));
    if (!options.json) {
      printLine(`\nTuning: ${options.output}, with ${entries.length} corrections`);
      printLine(`Serve it by "tds model add ID --tuning ${options.output}".`);
    }
  } finally {
    await model.close();
  }
}

/** Returns the labels of each mode with the model's scores, or undefined when the run was interrupted. */
async function labelsOf(
  model: ChosenModel,
  cases_file: string,
  read: CasesFile,
  options: TuneOptions,
): Promise<readonly ModeLabels[] | undefined> {
  const cases = drawCases(read.cases, options.limit, seededRandom(options.seed));
  const hash_key = hashKeyOf(read.sha256, options.seed);
  const needsStates = vectorCandidates(cases);
  const labels: ModeLabels[] = [];
  for (const mode of options.mode === BOTH ? MODES : [options.mode]) {
    // First of all, so that a calibration of other weights is refused before the long part.
    const temperatures = await model.temperatures(mode);
    using file = openScores({ directory: options.work, cases_file }, model, mode);
    if (!(await scoreCases(cases, { model, mode, file, probed_records: 0, needsStates }))) return undefined;
    labels.push(modeLabels(cases, file, { mode, temperatures, hash_key }));
  }
  return labels;
}

/** Returns the corrections, or undefined when fitting was interrupted. */
async function fitted(
  labels: readonly ModeLabels[],
  options: TuneOptions,
): Promise<readonly ModeTuning[] | undefined> {
  const total = fitCount(labels);
  const bar = new ProgressBar(process.stderr, () => systemClock.monotonic_ms());
  let done = 0;
  return await interruptible(async (isStopped) => {
    try {
      const tuned = await tuneModes(labels, {
        random: seededRandom(options.seed),
        onFit: async () => {
          // Signals arrive between two turns of the event loop.
          await new Promise((resolve) => setImmediate(resolve));
          if (isStopped()) throw new FittingStopped();
          bar.show({ done, total, done_now: done });
          done += 1;
        },
      });
      if (total > 0) bar.show({ done: total, total, done_now: total });
      return tuned;
    } catch (error) {
      if (!(error instanceof FittingStopped)) throw error;
      process.stderr.write('\nInterrupted; the scores are kept. The same command goes on from there.\n');
      return undefined;
    }
  });
}

function print(tuned: readonly ModeTuning[]): void {
  printLine(
    '\nEach question before and after its correction, each answer by a correction that it had no part in',
  );
  const [headings = [], ...rows] = tuningTable(tuned);
  printTable(headings, rows, 'None.');
  const conflicts = conflictCount(tuned);
  if (conflicts > 0) {
    printLine(
      `\nRecords with more than one answer to a question: ${conflicts}. Each counts once, with the shares of its answers.`,
    );
  }
}

/** Returns the JSON output: the numbers of the table, with the questions. */
function summary({ mode, questions }: ModeTuning) {
  return {
    mode,
    questions: questions.map(({ question, labels, conflicts, fitted: result }) => {
      const about = { type: question.type, instructions: question.instructions ?? null, labels, conflicts };
      if (typeof result === 'string') return { ...about, not_fitted: result };
      const { correction, before, after, gain_of_100_labels } = result;
      const parts = correction === null ? [] : partsOf(correction);
      return { ...about, parts, before, after, gain_of_100_labels };
    }),
  };
}
