import { isJsonObject, type JsonObject, type JsonValue, kindOf } from '../json/json-value.ts';
import { type Mode, parseQuestion, type Question, questionTypeOf } from '../questions/question.ts';
import { InvalidCriteria } from '../questions/question-fields.ts';
import { ignoredFields } from './ignored-fields.ts';
import { imageRefusal } from './images.ts';
import { DecisionRefusal } from './refusal.ts';

/** A question as the client asked it: its id, what the model is asked, and the threshold for a yes/no answer. */
export interface RequestedQuestion {
  readonly id: string;
  readonly question: Question;
  readonly threshold: number | null;
}

/** A request whose fields are in order. */
export interface DecisionRequest {
  readonly state: JsonValue;
  readonly questions: readonly RequestedQuestion[];
  readonly mode: Mode;
  /** Why the model will reject the request although it passed the service's checks; null normally. */
  readonly rejection: DecisionRefusal | null;
  /** Of the request and its questions, as `ignoredFields` gives them. */
  readonly ignored_fields: readonly string[];
}

/**
 * The model id that a body names, or why there is none. `default_model` is what `/v1/systemone` takes when the field is
 * absent or null; any other value that is no id is no model (`model_not_found`). `/v1/decisions` has no default and refuses an absent
 * model (contract: `missing_model`).
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

/** Why a body has no record or no questions; null when both are there (contract: the record is checked first). */
export function missingField(body: JsonObject<JsonValue>): DecisionRefusal | null {
  const state = body.get('state');
  if (typeof state !== 'string' && (typeof state !== 'object' || state === null)) {
    return new DecisionRefusal('missing_state', { param: 'state' });
  }
  const questions = body.get('questions');
  if (!isJsonObject(questions) || questions.names.length === 0) {
    return new DecisionRefusal('missing_questions', { param: 'questions' });
  }
  return null;
}

/**
 * The request in a body that has its fields, or the first code that it breaks: `too_many_questions`,
 * `invalid_question_type`, `invalid_criteria`, `invalid_mode`. The body's mode wins over the query's.
 */
export function parseDecisionRequest(
  body: JsonObject<JsonValue>,
  query_mode: string | null,
  questions_max: number,
): DecisionRequest | DecisionRefusal {
  const state = body.get('state');
  const asked = body.get('questions');
  const missing = missingField(body);
  if (missing !== null || state === undefined || !isJsonObject(asked)) {
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
  let rejected: DecisionRefusal | null = imageRefusal(body) ?? repeatedId(asked, 'questions');
  for (const [index, id] of ids.entries()) {
    const parsed = parseQuestion(asked.values[index]);
    const param = `questions.${id}.criteria`;
    if (parsed === null)
      return new DecisionRefusal('invalid_question_type', { param: `questions.${id}.type` });
    if (parsed instanceof InvalidCriteria) {
      return new DecisionRefusal('invalid_criteria', { message: parsed.message, param });
    }
    const { question, threshold, rejection } = parsed;
    if (rejection !== null)
      rejected ??= new DecisionRefusal('invalid_request', { message: rejection, param });
    rejected ??= repeatedId(field(asked.values[index], 'criteria'), param);
    questions.push({ id, question, threshold });
  }

  const mode = body.get('mode') ?? query_mode ?? 'fast';
  if (mode !== 'fast' && mode !== 'consistent') return new DecisionRefusal('invalid_mode', { param: 'mode' });
  return { state, questions, mode, rejection: rejected, ignored_fields: ignoredFields(body) };
}

function field(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? value.get(name) : undefined;
}

/** The refusal for ids of questions or options that are there twice: only one of the two could be answered. */
function repeatedId(object: JsonValue | undefined, path: string): DecisionRefusal | null {
  if (!isJsonObject(object) || object.repeated === null) return null;
  return new DecisionRefusal('invalid_request', {
    message: 'An id is there twice in the same object.',
    param: `${path}.${object.repeated}`,
  });
}
