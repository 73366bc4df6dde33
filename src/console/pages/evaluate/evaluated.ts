import { type Prediction, predictedClass } from '../../../eval/predictions.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { uncommittedProbability } from '../../../questions/noul.ts';
import { classesOf, type Question } from '../../../questions/question.ts';
import { identityOf, type QuestionIdentity } from '../../../tuning/question-identity.ts';
import { objectIn } from '../object-in.ts';
import type { Label, LabelledRow } from './labels.ts';

/** An answer beside the right one. Classes are those of the question's identity. */
export interface JudgedRow extends Prediction {
  readonly row: number;
  /** The most likely class. */
  readonly predicted: number;
}

/** A question, with all its answers. */
export interface EvaluatedQuestion {
  /** That of `QuestionIdentity`. */
  readonly key: string;
  readonly name: string;
  readonly question: Question;
  /** The names of the classes, for people. */
  readonly class_names: readonly string[];
  readonly judged: readonly JudgedRow[];
  /** Records with more than one right answer. */
  readonly conflicts: number;
}

/** Answers come in whole millionths: half of one stands for a probability of zero. */
export const PROBABILITY_MIN = 5e-7;
/** The most characters of a question that has no id, in a name. */
const NAME_LENGTH = 60;

/**
 * Returns the questions whose answers have come, in the order of the file. Questions that differ only in the order of
 * options are one.
 */
export function evaluatedQuestions(
  rows: readonly LabelledRow[],
  answers: ReadonlyMap<number, string>,
  nameOf: (label: Label) => string,
): readonly EvaluatedQuestion[] {
  const identities = new Map<Question, QuestionIdentity>();
  const found = new Map<string, { label: Label; identity: QuestionIdentity; judged: JudgedRow[] }>();
  for (const { row, record, labels } of rows) {
    const given = objectIn(answers.get(row) ?? '')?.get('answers');
    if (!isJsonObject(given)) continue;
    const record_text = writeJson(record);
    for (const label of labels) {
      const identity = identities.get(label.question) ?? identityOf(label.question);
      identities.set(label.question, identity);
      const judged = judgedRow(row, record_text, label, identity, given.get(label.id));
      const known = found.get(identity.key) ?? { label, identity, judged: [] };
      found.set(identity.key, known);
      if (judged !== null) known.judged.push(judged);
    }
  }
  return [...found.values()].map(({ label, identity, judged }) => ({
    key: identity.key,
    name: nameOf(label),
    question: label.question,
    class_names: classNames(label.question, identity),
    judged,
    conflicts: conflictsIn(judged),
  }));
}

/** Returns the first characters of a question, as its name. */
export function shortText({ instructions = '' }: Question): string {
  const text = typeof instructions === 'string' ? instructions : writeJson(instructions);
  return text.length <= NAME_LENGTH ? text : `${text.slice(0, NAME_LENGTH - 1)}…`;
}

function judgedRow(
  row: number,
  record: string,
  { question, answer, target }: Label,
  { classes, places }: QuestionIdentity,
  given: JsonValue | undefined,
): JudgedRow | null {
  if (!isJsonObject(given)) return null;
  const probabilities = probabilitiesOf(question, classes, given);
  if (probabilities === null) return null;
  return {
    ...{ row, record, source: '', type: question.type, classes, probabilities },
    answer: places.indexOf(answer),
    target: places.map((place) => target[place] ?? 0),
    predicted: predictedClass(question.type, probabilities),
  };
}

/** Returns the probability of each class in an answer of the service; null for an answer of another form. */
function probabilitiesOf(
  { type }: Question,
  classes: readonly string[],
  given: JsonObject<JsonValue>,
): readonly number[] | null {
  switch (type) {
    case 'noul': {
      const noul = given.get('noul');
      if (typeof noul !== 'number') return null;
      const yes = uncommittedProbability(noul);
      return [1 - yes, yes];
    }
    case 'choice':
    case 'score': {
      const shares = given.get('probabilities');
      if (!isJsonObject(shares)) return null;
      const read = classes.map((name) => shares.get(name)).filter((share) => typeof share === 'number');
      return read.length === classes.length ? read : null;
    }
  }
}

function classNames(question: Question, { places }: QuestionIdentity): readonly string[] {
  const classes = classesOf(question);
  switch (question.type) {
    case 'noul':
      return ['No', 'Yes'];
    case 'choice':
      return places.map((place) => classes[place] ?? '');
    case 'score':
      return question.levels.map(
        (level, at) => `${at} · ${typeof level === 'string' ? level : writeJson(level)}`,
      );
  }
}

function conflictsIn(judged: readonly JudgedRow[]): number {
  const answers = Map.groupBy(judged, ({ record }) => record);
  return [...answers.values()].filter((of_record) =>
    of_record.some(({ answer }) => answer !== of_record[0]?.answer),
  ).length;
}
