import type { ScoredQuestion } from '../../src/eval/collect.ts';
import type { Prediction } from '../../src/eval/predictions.ts';
import { QUESTIONS_MIN } from '../../src/eval/temperature-fit.ts';

const NOULS_PER_CASE = 10;
/** Cases with as many yes/no questions as a temperature needs. */
export const ENOUGH_NOULS = Array.from({ length: QUESTIONS_MIN / NOULS_PER_CASE }, (_, number) => {
  const questions = Array.from({ length: NOULS_PER_CASE }, (_question, index) => ({
    type: 'noul',
    instructions: 'Is it late?',
    answer: (number + index) % 3 === 0,
  }));
  return `${JSON.stringify({ src: 'shop', state: `Order ${number}.`, questions })}\n`;
}).join('');

/** A prediction of a noul whose probability of yes is given. */
export function noulPrediction(yes: number, answer: boolean, more: Partial<Prediction> = {}): Prediction {
  return {
    source: 'set',
    record: 'record',
    type: 'noul',
    classes: ['no', 'yes'],
    probabilities: [1 - yes, yes],
    answer: Number(answer),
    target: answer ? [0, 1] : [1, 0],
    ...more,
  };
}

/** A prediction of a choice between `a`, `b`, …; `answer` is an index. */
export function choicePrediction(
  probabilities: readonly number[],
  answer: number,
  more: Partial<Prediction> = {},
): Prediction {
  return {
    source: 'set',
    record: 'record',
    type: 'choice',
    classes: probabilities.map((_, index) => String.fromCodePoint(97 + index)),
    probabilities,
    answer,
    target: probabilities.map((_, index) => Number(index === answer)),
    ...more,
  };
}

/** A prediction of a score whose right level is `answer`. */
export function scorePrediction(
  probabilities: readonly number[],
  answer: number,
  more: Partial<Prediction> = {},
): Prediction {
  const classes = probabilities.map((_, level) => String(level));
  return choicePrediction(probabilities, answer, { type: 'score', classes, ...more });
}

/** A choice with these scores whose answer is option `answer`. */
export function scoredChoice(
  scores: readonly number[],
  answer: number,
  more: Partial<ScoredQuestion> = {},
): ScoredQuestion {
  return {
    source: 'set',
    record: 'record',
    question: {
      type: 'choice',
      instructions: 'Which?',
      options: scores.map((_, index) => ({ id: `${index}`, description: null })),
    },
    answer,
    target: scores.map((_, index) => Number(index === answer)),
    scores,
    ...more,
  };
}
