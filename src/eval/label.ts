import { type Question, traitsOf } from '../questions/question.ts';

/** A label as it is written in a cases file. */
export interface RawLabel {
  /** `true` or `false` for a noul, the id of an option for a choice, the index of a level for a score. */
  readonly answer: boolean | string | number;
  /** The annotators' shares: a list by class, or of a choice an object by option. */
  readonly soft?: number[] | Readonly<Record<string, number>> | null | undefined;
}

/** A question with its known answer. Classes are those of `classesOf`, in that order. */
export interface LabelledQuestion {
  readonly question: Question;
  readonly classes: readonly string[];
  /** The index of the right class. */
  readonly answer: number;
  /** The share of each class among the annotators; all on `answer` where nothing else is known. */
  readonly target: readonly number[];
}

/** Returns a question with its label; undefined where the label is none of the question's. */
export function labelOf(question: Question, raw: RawLabel): LabelledQuestion | undefined {
  const { classes, classIndex } = traitsOf(question);
  const answer = classIndex(raw.answer);
  if (answer < 0 || answer >= classes.length) return undefined;
  const target = targetOf(question, raw.soft, answer, classes);
  return target === undefined ? undefined : { question, classes, answer, target };
}

function targetOf(
  question: Question,
  soft: RawLabel['soft'],
  answer: number,
  classes: readonly string[],
): readonly number[] | undefined {
  if (soft == null) return classes.map((_, index) => (index === answer ? 1 : 0));
  const shares = sharesOf(question, soft, classes);
  if (shares?.length !== classes.length) return undefined;
  const sum = shares.reduce((total, share) => total + share, 0);
  return sum > 0 ? shares.map((share) => share / sum) : undefined;
}

/**
 * Returns the shares by class, from a list for ordered classes or an object for options; undefined for the
 * wrong form.
 */
function sharesOf(
  question: Question,
  soft: NonNullable<RawLabel['soft']>,
  classes: readonly string[],
): readonly number[] | undefined {
  switch (question.type) {
    case 'noul':
    case 'score':
      return Array.isArray(soft) ? soft : undefined;
    case 'choice':
      return Array.isArray(soft)
        ? undefined
        : classes.map((id) => (Object.hasOwn(soft, id) ? (soft[id] ?? 0) : 0));
  }
}
