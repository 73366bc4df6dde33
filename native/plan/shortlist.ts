import type { ChoiceQuestion } from '../../src/questions/choice.ts';
import type { Question } from '../../src/questions/question.ts';
import type { DecisionInput } from './profile.ts';

/** A choice with more options than these is read a second time. */
const OPTIONS_READ_ONCE = 32;
/** The most options of a second reading. */
const SHORTLIST_MAX = 16;
/** A second reading has at most one of so many options, so that it takes less than a third of the first one's tokens. */
const OPTIONS_PER_PLACE = 4;

/** The likeliest options of a choice, in the client's order. */
export interface Shortlist {
  /** The index of the choice in the request. */
  readonly asked: number;
  /** The choice with these options only. */
  readonly question: ChoiceQuestion;
  /** The places of these options in the choice. */
  readonly places: readonly number[];
}

/**
 * Returns the shortlists of a request's choices with many options, by their scores; none in consistent mode, which reads
 * each choice twice as it is. Each depends on its own choice only.
 */
export function shortlistsOf(
  { questions, mode }: DecisionInput,
  scores: readonly (readonly number[])[],
): readonly Shortlist[] {
  if (mode !== 'fast') return [];
  return questions.flatMap((question, asked) => {
    const choice = withManyOptions(question);
    if (choice === null) return [];
    const places = likeliest(scores[asked] ?? [], choice.options.length);
    const options = places.flatMap((place) => choice.options[place] ?? []);
    return [{ asked, question: { ...choice, options }, places }];
  });
}

function withManyOptions(question: Question): ChoiceQuestion | null {
  switch (question.type) {
    case 'noul':
    case 'score':
      return null;
    case 'choice':
      return question.options.length > OPTIONS_READ_ONCE ? question : null;
  }
}

function likeliest(scores: readonly number[], options: number): readonly number[] {
  const size = Math.min(SHORTLIST_MAX, Math.floor(options / OPTIONS_PER_PLACE));
  return scores
    .map((score, place) => ({ score, place }))
    .sort((one, other) => other.score - one.score || one.place - other.place)
    .slice(0, size)
    .map(({ place }) => place)
    .sort((one, other) => one - other);
}

/**
 * Returns the scores of a choice, in which the second reading tells the options of the shortlist apart. Together they stay
 * as likely as they were, and the likeliest option is one of them.
 */
export function withSecondReading(
  first: readonly number[],
  places: readonly number[],
  second: readonly number[],
): readonly number[] {
  const shift = logSum(places.map((place) => first[place] ?? Number.NaN)) - logSum(second);
  const scores = [...first];
  places.forEach((place, at) => {
    scores[place] = (second[at] ?? Number.NaN) + shift;
  });
  return scores;
}

function logSum(scores: readonly number[]): number {
  const highest = Math.max(...scores);
  return highest + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - highest), 0));
}
