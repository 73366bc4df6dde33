import { largest } from '../questions/probabilities.ts';
import {
  type Correction,
  type CorrectionShape,
  correctedScores,
  exampleLoss,
  fitCorrection,
} from './correction.ts';
import type { LabelledExample } from './labelled-example.ts';
import { labelsGain } from './learning-curve.ts';

/**
 * The folds of cross-validation: a correction is fitted without each part of the records in turn, and judged
 * on it.
 */
export const FOLDS = 5;

/** Shapes from the strongest penalty to the weakest. A fit begins where that of the shape before it ended. */
type ShapePath = readonly CorrectionShape[];
/** Paths by the number of parts, fewest first; those of a group differ only in their penalties. */
type ShapeGroups = readonly (readonly ShapePath[])[];

const VECTOR_PENALTIES = [0.3, 0.1, 0.03, 0.01];
const GROUPS: ShapeGroups = [
  [[{ words_penalty: null, vector_penalty: null }]],
  [[1.5, 0.5, 0.15, 0.05].map((words_penalty) => ({ words_penalty, vector_penalty: null }))],
];
const VECTOR_GROUPS: ShapeGroups = [
  [VECTOR_PENALTIES.map((vector_penalty) => ({ words_penalty: null, vector_penalty }))],
  [1.5, 0.5].map((words_penalty) => [0.1, 0.03].map((vector_penalty) => ({ words_penalty, vector_penalty }))),
];

/** The fewest labels of a vector: with fewer, trying it cost more than it brought (README). */
export const VECTOR_LABELS_MIN = 100;
/** The standard errors by which a vector must be better: with so many weights, more than one is often chance. */
const VECTOR_MARGIN = 2;
/** The most classes of a vector. More make it large, and are read a second time without it. */
export const VECTOR_CLASSES_MAX = 32;

/** Returns the shapes that are tried for these examples. */
function groupsFor(examples: readonly LabelledExample[]): ShapeGroups {
  const has_states = examples.every(({ states }) => states !== null);
  return has_states && examples.length >= VECTOR_LABELS_MIN ? [...GROUPS, ...VECTOR_GROUPS] : GROUPS;
}

/** The fewest labels of a learning curve: with fewer it is noise. */
const CURVE_LABELS_MIN = 32;
/** The shares of the records in the learning curve, besides all of them. */
const CURVE_SHARES = [0.25, 0.5];

/** Returns the most fits of `chooseCorrection`. */
export function mostFits(examples: readonly LabelledExample[]): number {
  return FOLDS * (groupsFor(examples).flat(2).length + CURVE_SHARES.length) + 1;
}

/** Measures of answers, each by a correction that was fitted without it. */
export interface AnswerMeasures {
  readonly accuracy: number;
  /** Negative log-likelihood in nats. */
  readonly loss: number;
}

/** The correction of a question, and its effect. */
export interface ChosenCorrection {
  /** Null where none beats the uncorrected model by more than its standard error. */
  readonly correction: Correction | null;
  readonly before: AnswerMeasures;
  /** The result of the best correction, even if it is rejected in the end. */
  readonly after: AnswerMeasures;
  /** The likely gain in accuracy of 100 more labels; null where it cannot be estimated. */
  readonly gain_of_100_labels: number | null;
  /** The share of each class among the answers, out of fold. */
  readonly answer_shares: readonly number[];
}

export interface ChooseOptions {
  readonly classes: number;
  /** Returns an order of the examples, drawn by a seed. */
  readonly order: (indexes: readonly number[]) => readonly number[];
  /** Called before each fit. */
  readonly onFit: () => Promise<void> | void;
}

/** Scores by class of every example, and the losses under them. */
interface Judged {
  readonly scores: readonly ArrayLike<number>[];
  readonly losses: Float64Array;
}

/** Examples as judged by fits without each fold. */
interface JudgedByFolds extends Judged {
  /** The parameters of each fold's fit. */
  readonly parameters: readonly Float64Array[];
}

/**
 * Chooses the parts of a question's correction by cross-validation and fits it on all examples. A shape with
 * more parts must beat those with fewer by more than the standard error. The result is measured on each fold
 * with a shape that was chosen without that fold. Rejects as `onFit` does.
 */
export async function chooseCorrection(
  examples: readonly LabelledExample[],
  options: ChooseOptions,
): Promise<ChosenCorrection> {
  const { classes, onFit } = options;
  const ranks = ranksOf(examples, options);
  const folds = ranks.map((rank) => rank % FOLDS);
  const plain = judged(
    examples,
    examples.map(({ scores }) => scores),
  );
  const by_shape = new Map<CorrectionShape, JudgedByFolds>();
  for (const path of groupsFor(examples).flat()) {
    let before: JudgedByFolds | undefined;
    for (const shape of path) {
      const judgement = await outOfFold(examples, folds, shape, options, everywhere, before?.parameters);
      by_shape.set(shape, judgement);
      // Weaker penalties would fit even more of what is chance.
      if (before !== undefined && mean(judgement.losses, everywhere) > mean(before.losses, everywhere)) break;
      before = judgement;
    }
  }
  const shapes = groupsFor(examples).map((group) => group.flat().filter((shape) => by_shape.has(shape)));
  const lossesOf = (shape: CorrectionShape | null) => (shape && by_shape.get(shape))?.losses ?? plain.losses;
  const chosen = chooseShape(shapes, lossesOf, everywhere);
  const by_fold = Array.from({ length: FOLDS }, (_, fold) =>
    chooseShape(shapes, lossesOf, (index) => folds[index] !== fold),
  );
  const scoresOf = (shape: CorrectionShape | null, index: number) =>
    ((shape && by_shape.get(shape)) ?? plain).scores[index] ?? [];
  const honest = judged(
    examples,
    examples.map((_, index) => scoresOf(by_fold[folds[index] ?? 0] ?? null, index)),
  );
  const is_kept = chosen !== null && beats(honest.losses, plain.losses, everywhere, 1);
  if (is_kept) await onFit();
  const final = is_kept ? honest : plain;
  return {
    correction: is_kept ? fitCorrection(examples, classes, chosen).correction : null,
    before: measuresOf(examples, plain),
    after: measuresOf(examples, honest),
    gain_of_100_labels:
      examples.length < CURVE_LABELS_MIN
        ? null
        : await curveGain(
            examples,
            ranks,
            chosen ?? leastLoss(shapes.flat(), lossesOf),
            is_kept ? null : plain,
            options,
            by_shape,
          ),
    answer_shares: answerShares(final, classes),
  };
}

/** Returns the position of each example in the drawn order. */
function ranksOf(examples: readonly LabelledExample[], { order }: ChooseOptions): readonly number[] {
  const ranks = examples.map(() => 0);
  order(examples.map((_, index) => index)).forEach((index, rank) => {
    ranks[index] = rank;
  });
  return ranks;
}

/**
 * Judges every example by a correction that was fitted on the chosen examples of the other folds. `starts` are the
 * parameters that each fold's fit begins with.
 */
async function outOfFold(
  examples: readonly LabelledExample[],
  folds: readonly number[],
  shape: CorrectionShape,
  { classes, onFit }: ChooseOptions,
  isTaken: (index: number) => boolean,
  starts: readonly Float64Array[] = [],
): Promise<JudgedByFolds> {
  const scores: ArrayLike<number>[] = examples.map((example) => example.scores);
  const ends: Float64Array[] = [];
  for (let fold = 0; fold < FOLDS; fold += 1) {
    await onFit();
    const others = examples.filter((_, index) => folds[index] !== fold && isTaken(index));
    const { correction, parameters } = fitCorrection(others, classes, shape, starts[fold]);
    ends.push(parameters);
    examples.forEach((example, index) => {
      if (folds[index] === fold) scores[index] = correctedScores(correction, example);
    });
  }
  return { ...judged(examples, scores), parameters: ends };
}

function judged(examples: readonly LabelledExample[], scores: readonly ArrayLike<number>[]): Judged {
  const losses = Float64Array.from(examples, ({ target }, index) => exampleLoss(scores[index] ?? [], target));
  return { scores, losses };
}

type IsCounted = (index: number) => boolean;
const everywhere: IsCounted = () => true;

type Shapes = readonly (readonly CorrectionShape[])[];

/** Returns the shape that beats all with fewer parts; null for the uncorrected model. */
function chooseShape(
  shapes: Shapes,
  lossesOf: (shape: CorrectionShape | null) => Float64Array,
  isCounted: IsCounted,
): CorrectionShape | null {
  let best: CorrectionShape | null = null;
  for (const group of shapes) {
    const candidate = leastLoss(group, lossesOf, isCounted);
    const margin = candidate.vector_penalty === null ? 1 : VECTOR_MARGIN;
    if (beats(lossesOf(candidate), lossesOf(best), isCounted, margin)) best = candidate;
  }
  return best;
}

/** Returns the shape of the least loss, even if it does not beat the uncorrected model. */
function leastLoss(
  shapes: readonly CorrectionShape[],
  lossesOf: (shape: CorrectionShape) => Float64Array,
  isCounted: IsCounted = everywhere,
): CorrectionShape {
  return shapes.reduce((one, other) =>
    mean(lossesOf(other), isCounted) < mean(lossesOf(one), isCounted) ? other : one,
  );
}

/** Returns true if losses are lower by more than so many standard errors of the difference. */
function beats(
  losses: Float64Array,
  than: Float64Array,
  isCounted: IsCounted,
  standard_errors: number,
): boolean {
  const gains = than
    .map((loss, index) => loss - (losses[index] ?? loss))
    .filter((_, index) => isCounted(index));
  const gain = mean(gains, everywhere);
  const variance = gains.reduce((sum, own) => sum + (own - gain) ** 2, 0) / (gains.length - 1);
  return gain > standard_errors * Math.sqrt(variance / gains.length);
}

function mean(values: Float64Array, isCounted: IsCounted): number {
  const counted = values.filter((_, index) => isCounted(index));
  return counted.reduce((sum, value) => sum + value, 0) / counted.length;
}

function measuresOf(examples: readonly LabelledExample[], { scores, losses }: Judged): AnswerMeasures {
  const hits = examples.map(({ answers }, index) => answers[largest(scores[index] ?? []).index] ?? 0);
  return {
    accuracy: hits.reduce((sum, hit) => sum + hit, 0) / examples.length,
    loss: mean(losses, everywhere),
  };
}

function answerShares({ scores }: Judged, classes: number): readonly number[] {
  const counts = new Array<number>(classes).fill(0);
  for (const own of scores) {
    const answer = largest(own).index;
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts.map((count) => count / scores.length);
}

/** Returns the likely gain of 100 more labels over the served answers. */
async function curveGain(
  examples: readonly LabelledExample[],
  ranks: readonly number[],
  shape: CorrectionShape,
  served: Judged | null,
  options: ChooseOptions,
  by_shape: ReadonlyMap<CorrectionShape, Judged>,
): Promise<number> {
  const folds = ranks.map((rank) => rank % FOLDS);
  const points: { labels: number; accuracy: number }[] = [];
  const add = (share: number, of: Judged) =>
    points.push({
      labels: (share * examples.length * (FOLDS - 1)) / FOLDS,
      accuracy: measuresOf(examples, of).accuracy,
    });
  for (const share of CURVE_SHARES) {
    const isTaken = (index: number) => (ranks[index] ?? 0) < share * examples.length;
    add(share, await outOfFold(examples, folds, shape, options, isTaken));
  }
  const all = by_shape.get(shape);
  if (all !== undefined) add(1, all);
  return labelsGain(points, {
    labels: examples.length,
    more: 100,
    served: served === null ? null : measuresOf(examples, served).accuracy,
  });
}
