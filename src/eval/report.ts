import { type Mode, QUESTION_TYPES, type QuestionType } from '../questions/question.ts';
import { type Abstaining, abstaining } from './abstaining.ts';
import { type Estimates, estimateMetrics, quantile } from './bootstrap.ts';
import type { EvalCase } from './cases.ts';
import { answerPairs, predictionOf, type ScoredQuestion, scoredQuestions } from './collect.ts';
import type { MeasuredFacts } from './measured-model.ts';
import { accuracy, type ReliabilityBin, reliabilityBins } from './metrics.ts';
import type { Prediction } from './predictions.ts';
import { PROBES, type Probe } from './probes.ts';
import { seededRandom, shuffled } from './random.ts';
import type { ScoreFile } from './score-file.ts';
import type { ServedScores } from './served-scores.ts';
import { type Steadiness, steadiness } from './stability.ts';
import { assignFolds, type FoldBy } from './temperature-fit.ts';

/** A question type, over all sets (`source` is null) or in one. */
export interface GroupResult {
  readonly type: QuestionType;
  readonly source: string | null;
  readonly questions: number;
  readonly records: number;
  readonly metrics: Estimates;
}

/** The results with the model's own scores, or with those of its answers. */
export interface Results {
  readonly types: readonly (GroupResult & {
    /** The mean of the accuracies of the sets, so that a larger set does not weigh more. */
    readonly accuracy_over_sets: number;
    readonly reliability: readonly ReliabilityBin[];
    readonly abstaining: Abstaining;
  })[];
  readonly sets: readonly GroupResult[];
}

export interface ProbeResult extends Steadiness {
  readonly probe: Probe;
  readonly type: QuestionType;
}

/** All results of `tds eval`, as written in JSON. */
export interface EvalReport {
  readonly created: string;
  readonly cases: {
    readonly file: string;
    readonly sha256: string;
    /** The number in the file, and the number in this report. */
    readonly records: number;
    readonly evaluated: number;
    /** Records whose questions do not fit into the model's context. */
    readonly refused: number;
  };
  readonly model: Omit<MeasuredFacts, 'temperatures'>;
  /** True for a tuned model, whose corrections are in `calibrated`. */
  readonly tuned: boolean;
  readonly mode: Mode;
  readonly seed: number;
  /** The folds by which thresholds are measured. */
  readonly folds: { readonly count: number; readonly by: FoldBy };
  readonly uncalibrated: Results;
  /** The results of the answers: tuned questions corrected, others calibrated. Null for a model with neither. */
  readonly calibrated: Results | null;
  /** The results of the served answers: calibrated where there is a calibration. */
  readonly stability: readonly ProbeResult[];
  readonly latency_ms: { readonly mean: number; readonly p50: number; readonly p95: number };
  readonly tokens: { readonly total: number; readonly per_record: number; readonly per_question: number };
}

export interface ReportInput {
  readonly created: string;
  readonly cases_file: string;
  readonly cases_sha256: string;
  readonly records: number;
  /** The cases to evaluate; those without scores in the file are left out. */
  readonly cases: readonly EvalCase[];
  readonly file: ScoreFile;
  readonly model: MeasuredFacts;
  readonly mode: Mode;
  /** True for a tuned model. */
  readonly tuned: boolean;
  /** Undefined where the model's own scores are served. */
  readonly served: ServedScores | undefined;
  readonly seed: number;
  /** As for `fitCalibration`: the same seed gives the same folds. */
  readonly folds: number;
  readonly fold_by: FoldBy;
  /** The draws for every confidence interval. */
  readonly resamples: number;
}

/** Returns the report on the scores in the file for the cases; the same input gives the same report. */
export function evalReport(input: ReportInput): EvalReport {
  const { cases, file, mode, served } = input;
  const entries = cases.flatMap((subject) => file.get(subject.digest, 'original') ?? []);
  const answered = entries.filter(({ scores }) => scores !== null);
  const questions = scoredQuestions(cases, file);
  const total = answered.reduce((sum, { input_tokens }) => sum + input_tokens, 0);
  const latencies = answered.map(({ latency_ms }) => latency_ms).sort((a, b) => a - b);
  const { temperatures: _, ...model } = input.model;
  const results = (scored: readonly ScoredQuestion[]) => resultsOf(scored.map(predictionOf), input);
  return {
    created: input.created,
    cases: {
      file: input.cases_file,
      sha256: input.cases_sha256,
      records: input.records,
      evaluated: answered.length,
      refused: entries.length - answered.length,
    },
    model,
    tuned: input.tuned,
    mode,
    seed: input.seed,
    folds: { count: input.folds, by: input.fold_by },
    uncalibrated: results(questions),
    calibrated: served === undefined ? null : results(scoredQuestions(cases, file, served)),
    stability: stabilityOf(cases, file, served),
    latency_ms: {
      mean: latencies.reduce((sum, latency) => sum + latency, 0) / latencies.length,
      p50: quantile(latencies, 0.5),
      p95: quantile(latencies, 0.95),
    },
    tokens: {
      total,
      per_record: total / answered.length,
      per_question: total / questions.length,
    },
  };
}

function resultsOf(
  predictions: readonly Prediction[],
  { seed, resamples, folds, fold_by }: Pick<ReportInput, 'seed' | 'resamples' | 'folds' | 'fold_by'>,
): Results {
  const group = (source: string | null, of_type: readonly Prediction[], type: QuestionType): GroupResult => ({
    type,
    source,
    questions: of_type.length,
    records: new Set(of_type.map(({ record }) => record)).size,
    metrics: estimateMetrics(of_type, { resamples, random: seededRandom(seed) }),
  });
  const fold_of = assignFolds(predictions, fold_by, folds, (groups) => shuffled(groups, seededRandom(seed)));
  const by_type = QUESTION_TYPES.map((type) => ({
    type,
    predictions: predictions.filter((prediction) => prediction.type === type),
    fold_of: fold_of.filter((_, index) => predictions[index]?.type === type),
  })).filter((one) => one.predictions.length > 0);
  return {
    types: by_type.map(({ type, predictions: of_type, fold_of: folds_of_type }) => ({
      ...group(null, of_type, type),
      accuracy_over_sets: meanOverSets(of_type),
      reliability: reliabilityBins(of_type),
      abstaining: abstaining(of_type, folds_of_type),
    })),
    sets: by_type.flatMap(({ type, predictions: of_type }) =>
      [...Map.groupBy(of_type, ({ source }) => source)]
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([source, of_set]) => group(source, of_set, type)),
    ),
  };
}

/** Returns the mean of the accuracies of the sets. */
function meanOverSets(predictions: readonly Prediction[]): number {
  const sets = [...Map.groupBy(predictions, ({ source }) => source).values()];
  return sets.reduce((sum, set) => sum + accuracy(set), 0) / sets.length;
}

function stabilityOf(
  cases: readonly EvalCase[],
  file: ScoreFile,
  served: ServedScores | undefined,
): readonly ProbeResult[] {
  const pairs = answerPairs(cases, file, served);
  return PROBES.flatMap((probe) =>
    QUESTION_TYPES.flatMap((type) => {
      const of_type = (pairs.get(probe) ?? []).filter(({ before }) => before.type === type);
      return of_type.length === 0 ? [] : [{ probe, type, ...steadiness(of_type) }];
    }),
  );
}
