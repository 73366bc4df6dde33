import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Mode, Question } from '../questions/question.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';
import { OPTIONS_MAX, OPTIONS_MIN } from './schemas.ts';

/** A question as the client asked it: its id, what the model is asked, and the threshold for a yes/no answer. */
export interface AskedQuestion {
  readonly id: string;
  readonly question: Question;
  readonly threshold: number | null;
}

/** A request whose fields are in order. */
export interface DecisionRequest {
  readonly state: JsonValue;
  readonly questions: readonly AskedQuestion[];
  readonly mode: Mode;
  /** Why the model will reject the request although it passed the service's checks; null normally. */
  readonly rejection: Refusal | null;
}

/** What is no string names no model, just as the empty string does. */
const NO_MODEL = '';

/**
 * The model id that a body names, or why there is none. `default_model` is what `/v1/systemone` takes when the field is
 * absent or null, and whatever else is there is the id of a model or of none; `/v1/decisions` has no default, and
 * `missing_model` instead (spec, "Decision request body").
 */
export function modelOf(body: JsonObject<JsonValue>, default_model: string | null): string | Refusal {
  const model = body.get('model') ?? default_model;
  const id = typeof model === 'string' ? model : NO_MODEL;
  return id === NO_MODEL && default_model === null ? new Refusal('missing_model', { param: 'model' }) : id;
}

/** The presence of record and questions (spec, "Decision request body"); null when both are there. */
export function missingField(body: JsonObject<JsonValue>): Refusal | null {
  const state = body.get('state');
  if (typeof state !== 'string' && (typeof state !== 'object' || state === null)) {
    return new Refusal('missing_state', { param: 'state' });
  }
  const questions = body.get('questions');
  if (!isJsonObject(questions) || questions.names.length === 0) {
    return new Refusal('missing_questions', { param: 'questions' });
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
): DecisionRequest | Refusal {
  const state = body.get('state');
  const asked = body.get('questions');
  const missing = missingField(body);
  if (missing !== null || state === undefined || !isJsonObject(asked)) {
    return missing ?? new Refusal('missing_questions', { param: 'questions' });
  }

  const ids = asked.names;
  if (ids.length > questions_max) {
    return new Refusal('too_many_questions', {
      message: `The request has ${ids.length} questions; the tier of the organization allows ${questions_max}.`,
      param: 'questions',
    });
  }
  const untyped = asked.values.findIndex((question) => questionType(question) === null);
  if (untyped >= 0) {
    return new Refusal('invalid_question_type', { param: `questions.${ids[untyped]}.type` });
  }
  const questions: AskedQuestion[] = [];
  let rejection: Refusal | null = null;
  for (const [index, id] of ids.entries()) {
    const value = asked.values[index];
    const parsed = isJsonObject(value) ? parseQuestion(value) : null;
    if (parsed === null) return new Refusal('invalid_criteria', { param: `questions.${id}.criteria` });
    rejection ??= parsed.rejected
      ? new Refusal('invalid_request', {
          message: 'The criteria of a noul question must be an object with descriptions of true and false.',
          param: `questions.${id}.criteria`,
        })
      : null;
    questions.push({ id, question: parsed.question, threshold: parsed.threshold });
  }

  const mode = body.get('mode') ?? query_mode ?? 'fast';
  if (mode !== 'fast' && mode !== 'consistent') return new Refusal('invalid_mode', { param: 'mode' });
  return { state, questions, mode, rejection };
}

interface ParsedQuestion {
  readonly question: Question;
  readonly threshold: number | null;
  /** The criteria are such that the model rejects the question. */
  readonly rejected: boolean;
}

function questionType(value: JsonValue): Question['type'] | null {
  if (!isJsonObject(value)) return null;
  const type = value.get('type');
  return type === 'noul' || type === 'choice' || type === 'score' ? type : null;
}

/** Null when the criteria do not fit the type (`invalid_criteria`). */
function parseQuestion(value: JsonObject<JsonValue>): ParsedQuestion | null {
  const instructions = value.get('instructions');
  const criteria = value.get('criteria') ?? null;
  switch (questionType(value)) {
    case 'noul': {
      const described = isJsonObject(criteria) ? criteria : undefined;
      return {
        question: {
          type: 'noul',
          instructions,
          yes: described?.get('true') ?? described?.get('yes'),
          no: described?.get('false') ?? described?.get('no'),
        },
        threshold: thresholdOf(value.get('threshold')),
        rejected: criteria !== null && !isJsonObject(criteria),
      };
    }
    case 'choice': {
      if (!isJsonObject(criteria) || !isOptionCount(criteria.names.length)) return null;
      const options = criteria.names.map((id, index) => ({
        id,
        description: criteria.values[index] ?? null,
      }));
      return { question: { type: 'choice', instructions, options }, threshold: null, rejected: false };
    }
    case 'score': {
      if (!isJsonArray(criteria) || !isOptionCount(criteria.length)) return null;
      return {
        question: { type: 'score', instructions, levels: criteria },
        threshold: null,
        rejected: false,
      };
    }
    case null:
      return null;
  }
}

function isOptionCount(count: number): boolean {
  return count >= OPTIONS_MIN && count <= OPTIONS_MAX;
}

/** A threshold outside 0 to 1 is ignored, whatever it is (spec, "Question object"). */
function thresholdOf(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : null;
}
