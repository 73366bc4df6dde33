import { seededRandom, shuffled } from '../../../eval/random.ts';
import type { HashKey } from '../../../hashing/half-siphash.ts';
import { readJson } from '../../../json/read-json.ts';
import { type Mode, parseQuestion } from '../../../questions/question.ts';
import { InvalidCriteria } from '../../../questions/question-fields.ts';
import type { AnswerMeasures } from '../../../tuning/choose-correction.ts';
import { partsOf } from '../../../tuning/correction.ts';
import {
  fitsOf,
  type LabelledAnswer,
  labelledQuestions,
  type NotFitted,
  type TunedQuestion,
  tuneQuestions,
} from '../../../tuning/fit-corrections.ts';
import { engineScores, identityOf } from '../../../tuning/question-identity.ts';
import { entriesOf } from '../../../tuning/tuning-entries.ts';
import { writeTuning } from '../../../tuning/tuning-file.ts';
import { PROBABILITY_MIN } from './evaluated.ts';
import { type FitQuestion, TUNING_SEED } from './fit-questions.ts';
import type { TuningBase } from './setup.ts';

/** The labels of an evaluation with its answers, in a form that can be sent to a worker. */
export interface FitInput {
  readonly base: TuningBase;
  readonly model: string;
  readonly mode: Mode;
  /** SHA-256 of the file's rows, in hex. */
  readonly cases_sha256: string;
  readonly hash_key: HashKey;
  /** The rows of the file. */
  readonly records: number;
  readonly questions: readonly FitQuestion[];
}

/** The effect of tuning a question, measured out of fold. */
export interface FittedQuestion {
  /** That of `QuestionIdentity`. */
  readonly key: string;
  readonly name: string;
  readonly labels: number;
  readonly conflicts: number;
  readonly fitted:
    | NotFitted
    | {
        /** Empty where no correction beats the model as it is. */
        readonly parts: readonly string[];
        readonly before: AnswerMeasures;
        readonly after: AnswerMeasures;
        readonly gain_of_100_labels: number | null;
      };
}

/** All results of a fit. */
export interface TuningFit {
  readonly questions: readonly FittedQuestion[];
  /** The text of the tuning file; null where no correction is better than the model as it is. */
  readonly text: string | null;
}

/** Returns corrections as `tds tune` fits them, and calls `onFit` before each fit with the done and all fits. */
export async function fitTuning(
  input: FitInput,
  onFit: (done: number, total: number) => Promise<void> | void,
): Promise<TuningFit> {
  const { base, model, mode, cases_sha256, hash_key, records } = input;
  const sets = labelledQuestions(input.questions.flatMap(labelledAnswers), hash_key);
  const total = fitsOf(sets);
  const random = seededRandom(TUNING_SEED);
  let done = 0;
  const tuned = await tuneQuestions(sets, {
    order: (indexes) => shuffled(indexes, random),
    onFit: () => onFit(done++, total),
  });
  const names = new Map(input.questions.map(({ name, body }) => [identityOf(questionIn(body)).key, name]));
  const entries = entriesOf(tuned, mode, base.temperatures?.[mode]);
  const header = {
    ...{ weights_sha256: base.weights_sha256, profile: base.profile, model, hash_key },
    fitted_on: { cases_sha256, records, seed: TUNING_SEED },
  };
  return {
    questions: tuned.map((one) => fittedQuestion(one, names.get(one.identity.key) ?? '')),
    text: entries.length === 0 ? null : writeTuning({ header, entries }),
  };
}

function labelledAnswers({ body, answers }: FitQuestion): readonly LabelledAnswer[] {
  const question = questionIn(body);
  const identity = identityOf(question);
  return answers.map(({ record, probabilities, answer, target }) => {
    const scores = probabilities.map((share) => Math.log(Math.max(PROBABILITY_MIN, share)));
    const place_of_class = identity.places;
    const own_target = target.map(() => 0);
    place_of_class.forEach((place, at) => {
      own_target[place] = target[at] ?? 0;
    });
    return {
      ...{ question, record, state: readJson(record) },
      scores: engineScores(question, identity, scores),
      // An answer of the service has none.
      states: null,
      answer: place_of_class[answer] ?? 0,
      target: own_target,
    };
  });
}

function questionIn(body: string) {
  const read = parseQuestion(readJson(body));
  if (read === null || read instanceof InvalidCriteria) throw new RangeError('the question was asked');
  return read.question;
}

function fittedQuestion(
  { identity: { key }, labels, conflicts, fitted }: TunedQuestion,
  name: string,
): FittedQuestion {
  if (typeof fitted === 'string') return { key, name, labels, conflicts, fitted };
  const { correction, before, after, gain_of_100_labels } = fitted;
  const parts = correction === null ? [] : partsOf(correction);
  return { key, name, labels, conflicts, fitted: { parts, before, after, gain_of_100_labels } };
}
