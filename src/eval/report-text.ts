import type { QuestionType } from '../questions/question.ts';
import { AUTOMATIC_ERROR_MAX, type Automatic, automaticBounds } from './abstaining.ts';
import type { Estimate } from './bootstrap.ts';
import type { EvalReport, GroupResult, Results } from './report.ts';

/** A table as rows of cells; the first row is the headings. */
export type Table = readonly (readonly string[])[];

/** The changes of the probes, in words. */
const PROBE_NAMES = {
  options_reversed: 'options reversed',
  option_added: 'an option added',
  question_reworded: 'question reworded',
  questions_added: 'unrelated questions added',
  text_added: 'irrelevant text added',
} as const;

export const ABSTAINING_TITLE = `Automatic answers, of which at most ${percent(AUTOMATIC_ERROR_MAX)} are wrong`;

/** The metrics of a group, by their headings. */
const METRICS = [
  ['ACCURACY', 'accuracy'],
  ['BALANCED', 'balanced_accuracy'],
  ['CHANCE', 'chance'],
  ['BRIER', 'brier'],
  ['ECE', 'expected_calibration_error'],
  ['NLL', 'negative_log_likelihood'],
  ['AUTOMATIC AT 5%', 'automatic_share'],
  ['LEVEL ERROR', 'mean_absolute_level_error'],
] as const satisfies readonly (readonly [heading: string, name: keyof GroupResult['metrics']])[];
const METRIC_HEADINGS = METRICS.map(([heading]) => heading);

/** Returns a number with three decimals; a dash where there is none. */
export function number(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : '-';
}

function percent(share: number): string {
  return `${Number((100 * share).toFixed(1))}%`;
}

/** Returns a number with its 95% interval. */
function interval({ value, low, high }: Estimate): string {
  return Number.isFinite(low) ? `${number(value)} [${number(low)}, ${number(high)}]` : number(value);
}

function metricCells({ metrics }: GroupResult, show: (estimate: Estimate) => string): readonly string[] {
  return METRICS.map(([, name]) => (name === 'chance' ? number(metrics.chance.value) : show(metrics[name])));
}

/** Returns the results before calibration and tuning, and after them where there is one. */
function stagesOf(report: EvalReport): readonly { readonly name: string; readonly results: Results }[] {
  return [
    { name: 'uncalibrated', results: report.uncalibrated },
    ...(report.calibrated === null ? [] : [{ name: servedName(report), results: report.calibrated }]),
  ];
}

/** Returns the name of the scores that answers are made of, where they are not the model's own. */
export function servedName({ tuned }: Pick<EvalReport, 'tuned'>): string {
  return tuned ? 'tuned' : 'calibrated';
}

/** Returns the results by type, before calibration and after it. */
export function typeTable(report: EvalReport): Table {
  return [
    ['TYPE', 'SCORES', 'QUESTIONS', 'SETS', 'OVER SETS', ...METRIC_HEADINGS],
    ...stagesOf(report).flatMap(({ name, results }) =>
      results.types.map((group) => [
        group.type,
        name,
        String(group.questions),
        String(results.sets.filter(({ type }) => type === group.type).length),
        number(group.accuracy_over_sets),
        ...metricCells(group, interval),
      ]),
    ),
  ];
}

/** Returns the condition of automatic answers, and the results, here and out of fold. */
export function abstainingTable(report: EvalReport): Table {
  const cells = (automatic: Automatic | null) =>
    automatic === null
      ? ['-', '-']
      : [percent(automatic.share), automatic.error_rate === null ? '-' : percent(automatic.error_rate)];
  return [
    ['TYPE', 'SCORES', 'THRESHOLD', 'AUTOMATIC', 'WRONG', 'AUTOMATIC OUT OF FOLD', 'WRONG OUT OF FOLD'],
    ...stagesOf(report).flatMap(({ name, results }) =>
      results.types.map(({ type, abstaining }) => [
        type,
        name,
        conditionText(type, abstaining.threshold),
        ...cells(abstaining),
        ...cells(abstaining.out_of_fold),
      ]),
    ),
  ];
}

/** Returns the condition of a threshold by the fields of a response. */
function conditionText(type: QuestionType, threshold: number | null): string {
  if (threshold === null) return 'none';
  const { least, most } = automaticBounds(type, threshold);
  return most === null ? `probability >= ${least}` : `noul >= ${least} or <= ${most}`;
}

/** Returns the results of the served answers, by type and set. */
export function setTable(report: EvalReport): Table {
  return [
    ['TYPE', 'SET', 'QUESTIONS', ...METRIC_HEADINGS],
    ...(report.calibrated ?? report.uncalibrated).sets.map((group) => [
      group.type,
      group.source ?? '',
      String(group.questions),
      interval(group.metrics.accuracy),
      ...metricCells(group, ({ value }) => number(value)).slice(1),
    ]),
  ];
}

/** Returns the changes of answers under every irrelevant change of the request. */
export function stabilityTable(report: EvalReport): Table {
  return [
    ['CHANGE', 'TYPE', 'QUESTIONS', 'FLIPPED', 'MEAN CHANGE'],
    ...report.stability.map((row) => [
      PROBE_NAMES[row.probe],
      row.type,
      String(row.questions),
      `${(100 * row.flip_rate).toFixed(1)}%`,
      number(row.mean_change),
    ]),
  ];
}

/** Returns a summary of the evaluation and its cost, one sentence a line. */
export function summaryLines(report: EvalReport): readonly string[] {
  const { cases, model, latency_ms, tokens } = report;
  return [
    `${cases.file}: ${cases.evaluated} of ${cases.records} records, mode ${report.mode}${
      cases.refused === 0 ? '' : `; ${cases.refused} records did not fit and are left out`
    }.`,
    `Model ${model.weights_sha256.slice(0, 12)} by ${model.profile} on ${model.device} (${model.evaluator}).`,
    `Latency of a record: mean ${latency_ms.mean.toFixed(0)} ms, median ${latency_ms.p50.toFixed(0)} ms, 95% within ${latency_ms.p95.toFixed(0)} ms.`,
    `Tokens read: ${tokens.total} in all, ${tokens.per_record.toFixed(0)} a record, ${tokens.per_question.toFixed(0)} a question.`,
  ];
}
