import { type Prediction, predictedClass } from './predictions.ts';

/** A right answer with the answer that was given, and their number. */
export interface ConfusionCell {
  /** The index of the right class. */
  readonly answer: number;
  /** The index of the most likely class. */
  readonly predicted: number;
  readonly count: number;
}

/** Returns the cells that have predictions of one question, the largest first. */
export function confusionCells(predictions: readonly Prediction[]): readonly ConfusionCell[] {
  const cells = new Map<string, ConfusionCell>();
  for (const { type, probabilities, answer } of predictions) {
    const predicted = predictedClass(type, probabilities);
    const key = `${answer} ${predicted}`;
    cells.set(key, { answer, predicted, count: (cells.get(key)?.count ?? 0) + 1 });
  }
  return [...cells.values()].toSorted(
    (a, b) => b.count - a.count || a.answer - b.answer || a.predicted - b.predicted,
  );
}
