import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';
import { uncommittedProbability } from '../questions/noul.ts';
import { classesOf, type Question, questionBody } from '../questions/question.ts';
import { expectedLevel } from '../questions/score.ts';
import { parsedAnswer, WrongAnswer } from './wrong-answer.ts';

/** The path of decisions, and the list that every server of the format has. */
export const DECISION_PATH = '/v1/systemone';
export const MODELS_PATH = '/v1/models';

/** The tolerance for sums, means and maxima: that of the strictest client. */
const TOLERANCE = 1e-6;

/**
 * The probability that stands for any smaller one, so that scores are finite. With 254 of it, no answer changes
 * by half a millionth.
 */
const PROBABILITY_MIN = 1e-9;

/** A checked answer in the format. */
export interface SystemOneAnswer {
  /** Scores that give the same probabilities, as of `DecisionEngine.evaluate`. */
  readonly scores: readonly (readonly number[])[];
  /** The tokens that the upstream reports; null where it reports nothing billable. */
  readonly input_tokens: number | null;
  /** The upstream's name of the model that answered; null where it reports none. */
  readonly model: string | null;
}

/** The ids of a request's questions: upstreams do not get the client's own. */
const idOf = (index: number) => `q${index + 1}`;

/**
 * Returns the body that asks all questions about a record in one call. The record is already JSON, written
 * once for all calls.
 */
export function requestBody(state: string, questions: readonly Question[], model: string | null): string {
  const name = model === null ? '' : `"model":${writeJson(model)},`;
  return `{${name}"state":${state},"questions":${questionsBody(questions)}}`;
}

/** Returns the questions as JSON. */
export function questionsBody(questions: readonly Question[]): string {
  return writeJson(JsonObject.of(questions.map((question, index) => [idOf(index), questionBody(question)])));
}

/**
 * Parses the answers to exactly these questions, with the strictest client's checks. They cover ids, types,
 * options, probabilities and their sum, the chosen option and the mean level. Throws `WrongAnswer`.
 */
export function readAnswer(text: string, questions: readonly Question[]): SystemOneAnswer {
  const body = parsedAnswer(text);
  const answers = isJsonObject(body) ? body.get('answers') : undefined;
  if (!isJsonObject(body) || !isJsonObject(answers)) throw new WrongAnswer('The answer has no answers.');
  if (answers.names.length !== questions.length) {
    throw new WrongAnswer('The answer has not exactly one answer for each question.');
  }
  const model = body.get('model');
  // Only a server of this program reports this, and only its nouls are committed to one side.
  const is_committed = body.get('object') === 'decision';
  return {
    scores: questions.map((question, index) => scoresOf(question, answers.get(idOf(index)), is_committed)),
    input_tokens: tokensOf(body.get('usage')),
    model: typeof model === 'string' ? model : null,
  };
}

/** Returns the number of the header about tokens left out of the record: 0 where there is none. */
export function readLeftOut(header: string | null): number {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : 0;
}

function tokensOf(usage: JsonValue | undefined): number | null {
  const tokens = isJsonObject(usage) ? usage.get('input_tokens') : undefined;
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : null;
}

function scoresOf(
  question: Question,
  answer: JsonValue | undefined,
  is_committed: boolean,
): readonly number[] {
  if (!isJsonObject(answer) || answer.get('type') !== question.type) {
    throw new WrongAnswer('A question has no answer of its type.');
  }
  switch (question.type) {
    case 'noul': {
      const noul = answer.get('noul');
      if (!isProbability(noul)) throw new WrongAnswer('A noul is no probability.');
      return [logOdds(is_committed ? uncommittedProbability(noul) : noul)];
    }
    case 'choice': {
      const names = classesOf(question);
      const probabilities = distribution(answer.get('probabilities'), names);
      requireLargest(answer.get('choice'), names, probabilities);
      return probabilities.map(finiteLog);
    }
    case 'score': {
      const probabilities = distribution(answer.get('probabilities'), classesOf(question));
      requireMean(answer.get('score'), probabilities);
      return probabilities.map(finiteLog);
    }
  }
}

function isProbability(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function distribution(value: JsonValue | undefined, names: readonly string[]): readonly number[] {
  if (!isJsonObject(value) || value.names.length !== names.length) {
    throw new WrongAnswer('Probabilities are not those of the options.');
  }
  const probabilities = names.map((name, index) => {
    // The names are nearly always in our order.
    const probability = value.names[index] === name ? value.values[index] : value.get(name);
    if (!isProbability(probability)) throw new WrongAnswer('An option has no probability.');
    return probability;
  });
  const sum = probabilities.reduce((total, probability) => total + probability, 0);
  if (Math.abs(sum - 1) > TOLERANCE) throw new WrongAnswer('Probabilities do not sum to 1.');
  return probabilities;
}

function requireLargest(
  choice: JsonValue | undefined,
  names: readonly string[],
  probabilities: readonly number[],
): void {
  const chosen = typeof choice === 'string' ? probabilities[names.indexOf(choice)] : undefined;
  if (chosen === undefined) throw new WrongAnswer('The choice is none of the options.');
  if (Math.max(...probabilities) > chosen + TOLERANCE)
    throw new WrongAnswer('The choice is not the most likely option.');
}

function requireMean(score: JsonValue | undefined, probabilities: readonly number[]): void {
  if (typeof score !== 'number' || !(Math.abs(score - expectedLevel(probabilities)) <= TOLERANCE)) {
    throw new WrongAnswer('The score is not the mean of the levels.');
  }
}

function logOdds(probability: number): number {
  return finiteLog(probability) - finiteLog(1 - probability);
}

function finiteLog(probability: number): number {
  return Math.log(Math.max(PROBABILITY_MIN, probability));
}
