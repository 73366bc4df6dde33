import type { Mode, Question } from '../questions/question.ts';
import { type TypeTemperatures, temperatureFor } from '../questions/temperatures.ts';
import type { TunedQuestion } from './fit-corrections.ts';
import type { TuningEntry } from './tuning-file.ts';

/**
 * Returns the worthwhile corrections of questions that were tuned on calibrated scores, as corrections of uncalibrated
 * ones.
 */
export function entriesOf(
  questions: readonly TunedQuestion[],
  mode: Mode,
  temperatures: TypeTemperatures | undefined,
): readonly TuningEntry[] {
  return questions.flatMap(({ question, labels, fitted }): TuningEntry[] => {
    if (typeof fitted === 'string' || fitted.correction === null) return [];
    const { correction, before, after, answer_shares } = fitted;
    return [
      {
        question,
        mode,
        ...correction,
        scale: correction.scale / temperatureOf(question, temperatures),
        labels,
        accuracy: { before: before.accuracy, after: after.accuracy },
        loss: { before: before.loss, after: after.loss },
        answer_shares,
      },
    ];
  });
}

/** Returns a question's temperature; 1 without any. */
export function temperatureOf(question: Question, temperatures: TypeTemperatures | undefined): number {
  return temperatures === undefined ? 1 : temperatureFor(question, temperatures);
}
