import { noulAnswer } from '../../../questions/noul.ts';
import type { QuestionType } from '../../../questions/question.ts';
import { formatNumber } from '../format.ts';

/** Answers have whole millionths, so that these digits say exactly which pass. */
const DIGITS = 6;

/** Returns the condition of an automatic answer, by the fields of a response. `threshold` is a probability. */
export function automaticCondition(type: QuestionType, threshold: number): string {
  const text = (value: number) => formatNumber(value, DIGITS);
  switch (type) {
    case 'noul': {
      const { noul: yes } = noulAnswer(threshold, null);
      const { noul: no } = noulAnswer(1 - threshold, null);
      return `those whose noul is at least ${text(yes)}, or at most ${text(no)}`;
    }
    case 'choice':
    case 'score':
      return `those whose likeliest probability is at least ${text(threshold)}`;
  }
}
