import { automaticBounds } from '../../../eval/abstaining.ts';
import type { QuestionType } from '../../../questions/question.ts';
import { formatNumber } from '../format.ts';

/** Answers have whole millionths, so that these digits say exactly which pass. */
const DIGITS = 6;

/** Returns the condition of an automatic answer, by the fields of a response. `threshold` is a probability. */
export function automaticCondition(type: QuestionType, threshold: number): string {
  const { least, most } = automaticBounds(type, threshold);
  const text = (value: number) => formatNumber(value, DIGITS);
  return most === null
    ? `those whose likeliest probability is at least ${text(least)}`
    : `those whose noul is at least ${text(least)}, or at most ${text(most)}`;
}
