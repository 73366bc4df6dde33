import { ERRORS } from '../errors/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue, kindOf } from '../json/json-value.ts';
import { type Mode, parseQuestion, type Question, questionTypeOf } from '../questions/question.ts';
import { InvalidCriteria } from '../questions/question-fields.ts';
import { isMode } from '../questions/types-and-modes.ts';
import { ignoredFields } from './ignored-fields.ts';
import { imageRefusal } from './images.ts';
import { isRecord, withoutParts } from './record-parts.ts';
import { DecisionRefusal } from './refusal.ts';
import type { DecisionRecord } from './schemas.ts';

/** A client's question: its id, the question for the model, and the threshold for a yes/no answer. */
export interface RequestedQuestion {
  readonly id: string;
  readonly question: Question;
  readonly threshold: number | null;
}

/** A request with valid fields. */
export interface DecisionRequest {
  readonly state: DecisionRecord;
  readonly questions: readonly RequestedQuestion[];
  readonly mode: Mode;
  /**
   * The reason why the model will reject the request although it passed the service's checks; normally null.
   */
  readonly rejection: DecisionRefusal | null;
  /** The unread fields of the request and its questions, by `ignoredFields`. */
  readonly ignored_fields: readonly string[];
}

/**
 * Returns the model id of a body, or the refusal. `/v1/systemone` uses `default_model` when the field is
 * absent or null; any other value that is not an id is no model (`model_not_found`). `/v1/decisions` has no
 * default and refuses an absent model (contract: `missing_model`).
 */
export function modelOf(body: JsonObject<JsonValue>, default_model: string | null): string | DecisionRefusal {
  const model = body.get('model') ?? default_model;
  if (typeof model === 'string' && model !== '') return model;
  const code = default_model === null ? 'missing_model' : 'model_not_found';
  if (model === null) return new DecisionRefusal(code, { param: 'model' });
  const is = model === '' ? 'the empty string' : kindOf(model);
  return new DecisionRefusal(code, {
    message: `The model must be the id of a model, and is ${is}.`,
    param: 'model',
  });
}

/**
 * Returns the refusal of a body without a record or questions, or null (contract: the record is checked
 * first).
 */
export function missingField(body: JsonObject<JsonValue>): DecisionRefusal | null {
  const state = body.get('state');
  if (!isRecord(state)) {
    return new DecisionRefusal('missing_state', { message: whyNoRecord(body, state), param: 'state' });
  }
  const questions = body.get('questions') ?? null;
  if (isJsonObject(questions) && questions.names.length > 0) return null;
  const message =
    questions === null || isJsonObject(questions)
      ? ERRORS.missing_questions.message
      : `The questions must be an object from question id to question, and are ${kindOf(questions)}.`;
  return new DecisionRefusal('missing_questions', { message, param: 'questions' });
}

function whyNoRecord(body: JsonObject<JsonValue>, state: JsonValue = null): string {
  if (state !== null) return `The state must be a string, an object or an array, and is ${kindOf(state)}.`;
  return body.get('input') !== undefined && isJsonObject(body.get('questions'))
    ? 'The request has no state: beside an object of questions the record is "state", not "input".'
    : ERRORS.missing_state.message;
}

/**
 * Returns the request of a body with all fields, or the first error: `too_many_questions`,
 * `invalid_question_type`, `invalid_criteria`, `invalid_mode`. The body's mode takes precedence over the
 * query's.
 */
export function parseDecisionRequest(
  body: JsonObject<JsonValue>,
  query_mode: string | null,
  questions_max: number,
): DecisionRequest | DecisionRefusal {
  const state = withoutParts(body.get('state'));
  const asked = body.get('questions');
  const missing = missingField(body);
  if (missing !== null || !isRecord(state) || !isJsonObject(asked)) {
    return missing ?? new DecisionRefusal('missing_questions', { param: 'questions' });
  }

  const ids = asked.names;
  if (ids.length > questions_max) {
    return new DecisionRefusal('too_many_questions', {
      message: `The request has ${ids.length} questions; the tier of the organization allows ${questions_max}.`,
      param: 'questions',
    });
  }
  const untyped = asked.values.findIndex((question) => questionTypeOf(question) === null);
  if (untyped >= 0) {
    return new DecisionRefusal('invalid_question_type', { param: `questions.${ids[untyped]}.type` });
  }
  const questions: RequestedQuestion[] = [];
  let rejected: DecisionRefusal | null =
    imageRefusal(body.with('state', state)) ?? repeatedId(asked, 'questions');
  for (const [index, id] of ids.entries()) {
    const value = asked.values[index];
    const parsed = parseQuestion(value);
    const param = `questions.${id}.criteria`;
    if (parsed === null)
      return new DecisionRefusal('invalid_question_type', { param: `questions.${id}.type` });
    if (parsed instanceof InvalidCriteria) {
      return new DecisionRefusal('invalid_criteria', { message: parsed.message, param });
    }
    const { question, threshold, rejection } = parsed;
    if (rejection !== null)
      rejected ??= new DecisionRefusal('invalid_request', { message: rejection, param });
    rejected ??= repeatedId(isJsonObject(value) ? value.get('criteria') : undefined, param);
    questions.push({ id, question, threshold });
  }

  const mode = body.get('mode') ?? query_mode ?? 'fast';
  if (!isMode(mode)) return new DecisionRefusal('invalid_mode', { param: 'mode' });
  return { state, questions, mode, rejection: rejected, ignored_fields: ignoredFields(body) };
}

/**
 * Returns the refusal for repeated ids of questions or options, of which only one could be answered; null for
 * none.
 */
function repeatedId(object: JsonValue | undefined, path: string): DecisionRefusal | null {
  if (!isJsonObject(object) || object.repeated === null) return null;
  return new DecisionRefusal('invalid_request', {
    message: 'An id is there twice in the same object.',
    param: `${path}.${object.repeated}`,
  });
}
