import type { HashKey } from '../hashing/half-siphash.ts';
import type { JsonValue } from '../json/json-value.ts';
import type { Question } from '../questions/question.ts';
import { type ChosenCorrection, chooseCorrection, mostFits } from './choose-correction.ts';
import type { LabelledExample } from './labelled-example.ts';
import { classScores, classStates, identityOf, type QuestionIdentity } from './question-identity.ts';
import { recordWords } from './record-words.ts';

/** The fewest labels for a fit. */
export const LABELS_MIN = 8;

/** A known answer, with the model's scores. */
export interface LabelledAnswer {
  readonly question: Question;
  /** Identifies the record, for all questions about it. */
  readonly record: string;
  readonly state: JsonValue;
  /** The scores of the served model, calibrated. */
  readonly scores: readonly number[];
  /** The hidden states of the scores; null where they are unknown. */
  readonly states: readonly (readonly number[])[] | null;
  /** The index of the answer, with classes as in `classesOf`. */
  readonly answer: number;
  readonly target: readonly number[];
}

/** A question about several records, with its labels. */
export interface LabelledQuestionSet {
  readonly question: Question;
  readonly identity: QuestionIdentity;
  readonly examples: readonly LabelledExample[];
  /** The number of records with more than one answer. */
  readonly conflicts: number;
}

/** The reason why nothing was fitted for a question. */
export type NotFitted = 'too_few_labels' | 'one_class';

/** The result of tuning a question. */
export interface TunedQuestion extends Omit<LabelledQuestionSet, 'examples'> {
  readonly labels: number;
  readonly fitted: ChosenCorrection | NotFitted;
}

/**
 * Returns the answers by question, in the order in which questions first occur. A record with several labels
 * counts once, with the shares of its answers.
 */
export function labelledQuestions(
  answers: readonly LabelledAnswer[],
  hash_key: HashKey,
): readonly LabelledQuestionSet[] {
  const words = new Map<string, Int32Array>();
  const wordsOf = ({ record, state }: LabelledAnswer) => {
    const known = words.get(record) ?? recordWords(state, hash_key);
    words.set(record, known);
    return known;
  };
  const identified = answers.map((answer) => ({ answer, identity: identityOf(answer.question) }));
  const groups = Map.groupBy(identified, ({ identity }) => identity.key);
  return [...groups.values()].flatMap((group): LabelledQuestionSet[] => {
    const [first] = group;
    if (first === undefined) return [];
    const records = [...Map.groupBy(group, ({ answer }) => answer.record).values()];
    const examples = records.flatMap((labels) => exampleOf(labels, wordsOf));
    return [
      {
        question: first.answer.question,
        identity: first.identity,
        examples,
        conflicts: examples.filter(({ answers: shares }) => Math.max(...shares) < 1).length,
      },
    ];
  });
}

interface IdentifiedAnswer {
  readonly answer: LabelledAnswer;
  readonly identity: QuestionIdentity;
}

/** Returns one record's answers to one question as an example; none where there is no answer. */
function exampleOf(
  labels: readonly IdentifiedAnswer[],
  wordsOf: (answer: LabelledAnswer) => Int32Array,
): readonly LabelledExample[] {
  const [first] = labels;
  if (first === undefined) return [];
  const { answer, identity } = first;
  const meanOf = (shareOf: (label: IdentifiedAnswer, at: number) => number) =>
    identity.classes.map(
      (_, at) => labels.reduce((sum, label) => sum + shareOf(label, at), 0) / labels.length,
    );
  return [
    {
      record: answer.record,
      scores: classScores(answer.question, identity, answer.scores),
      target: meanOf(({ answer: own, identity: { places } }, at) => own.target[places[at] ?? 0] ?? 0),
      answers: meanOf(({ answer: own, identity: { places } }, at) => (places[at] === own.answer ? 1 : 0)),
      words: wordsOf(answer),
      states: answer.states && Float32Array.from(classStates(identity, answer.states)),
    },
  ];
}

/** Returns the most fits of `tuneQuestions`. */
export function fitsOf(sets: readonly LabelledQuestionSet[]): number {
  const fitted = sets.filter((set) => notFitted(set) === null);
  return fitted.reduce((sum, { examples }) => sum + mostFits(examples), 0);
}

/**
 * Returns the correction of every question with enough labels; the same for the same seed behind `order`.
 * Calls `onFit` before each fit, and rejects as it does.
 */
export async function tuneQuestions(
  sets: readonly LabelledQuestionSet[],
  options: {
    readonly order: (indexes: readonly number[]) => readonly number[];
    readonly onFit: () => Promise<void> | void;
  },
): Promise<readonly TunedQuestion[]> {
  const tuned: TunedQuestion[] = [];
  for (const { examples, ...set } of sets) {
    const classes = set.identity.classes.length;
    const fitted = notFitted({ examples }) ?? (await chooseCorrection(examples, { ...options, classes }));
    tuned.push({ ...set, labels: examples.length, fitted });
  }
  return tuned;
}

function notFitted({ examples }: Pick<LabelledQuestionSet, 'examples'>): NotFitted | null {
  if (examples.length < LABELS_MIN) return 'too_few_labels';
  const answered = new Set(
    examples.flatMap(({ answers }) => answers.flatMap((share, at) => (share > 0 ? [at] : []))),
  );
  return answered.size < 2 ? 'one_class' : null;
}
