import type { Estimate } from './bootstrap.ts';
import type { EvaluationReport, GroupResult } from './report.ts';

/** A table as rows of cells; the first row is the headings. */
export type Table = readonly (readonly string[])[];

/** What each probe did, for people. */
export const PROBE_NAMES = {
  options_reversed: 'options reversed',
  option_added: 'an option added',
  question_reworded: 'question reworded',
  questions_added: 'unrelated questions added',
  text_added: 'irrelevant text added',
} as const;

const METRIC_HEADINGS = ['ACCURACY', 'BALANCED', 'CHANCE', 'BRIER', 'ECE', 'NLL', 'AUTOMATIC AT 5%'];

/** A number to three digits; a dash where there is none. */
export function number(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : '-';
}

/** A number with its 95% interval. */
export function interval({ value, low, high }: Estimate): string {
  return Number.isFinite(low) ? `${number(value)} [${number(low)}, ${number(high)}]` : number(value);
}

function metricCells({ metrics }: GroupResult, show: (estimate: Estimate) => string): readonly string[] {
  return [
    show(metrics.accuracy),
    show(metrics.balanced_accuracy),
    number(metrics.chance.value),
    show(metrics.brier),
    show(metrics.expected_calibration_error),
    show(metrics.negative_log_likelihood),
    show(metrics.automatic_share),
  ];
}

/** The results by type, before calibration and after it. */
export function typeTable(report: EvaluationReport): Table {
  const stages = [
    { name: 'uncalibrated', results: report.uncalibrated },
    ...(report.calibrated === null ? [] : [{ name: 'calibrated', results: report.calibrated }]),
  ];
  return [
    ['TYPE', 'SCORES', 'QUESTIONS', 'SETS', 'OVER SETS', ...METRIC_HEADINGS],
    ...stages.flatMap(({ name, results }) =>
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

/** The results by type and set, of the answers as they are served. */
export function setTable(report: EvaluationReport): Table {
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

/** How much answers moved under every change that should not matter. */
export function stabilityTable(report: EvaluationReport): Table {
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

/** What was evaluated, and what it cost, a sentence a line. */
export function summaryLines(report: EvaluationReport): readonly string[] {
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
