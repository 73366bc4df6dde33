import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { readJson } from '../../../json/read-json.ts';
import {
  isMode,
  isQuestionType,
  type Mode,
  QUESTION_TYPES,
  type QuestionType,
} from '../../../questions/types-and-modes.ts';
import { prettyJson } from './pretty-json.ts';

/** The request in progress: the record and its questions, in the shape of the form. */
export interface Draft {
  readonly record: DraftRecord;
  readonly questions: readonly DraftQuestion[];
}

export interface DraftRecord {
  readonly kind: 'text' | 'json';
  readonly text: string;
}

/** A question with the fields of every type, so that another type can be tried without losing input. */
export interface DraftQuestion {
  /** The identity of the question while it is moved and renamed; never sent. */
  readonly key: number;
  readonly id: string;
  readonly type: QuestionType;
  readonly instructions: string;
  /** The meaning of yes and no; empty for none. */
  readonly yes: string;
  readonly no: string;
  readonly threshold: number | null;
  readonly options: readonly DraftOption[];
  readonly levels: readonly DraftLevel[];
}

export interface DraftOption {
  readonly key: number;
  readonly id: string;
  readonly description: string;
}

export interface DraftLevel {
  readonly key: number;
  readonly text: string;
}

/** The parts of a request besides record and questions; null for no mode. */
export interface Asking {
  readonly model: string;
  readonly mode: Mode | null;
}

let next_key = 1;

export function newOption(id = '', description = ''): DraftOption {
  return { key: next_key++, id, description };
}

export function newLevel(text = ''): DraftLevel {
  return { key: next_key++, text };
}

/** Returns an empty question with the first free id. */
export function newQuestion(type: QuestionType, taken: readonly string[]): DraftQuestion {
  return {
    key: next_key++,
    id: freeId(`question_${taken.length + 1}`, taken),
    type,
    instructions: '',
    yes: '',
    no: '',
    threshold: null,
    options: [newOption(), newOption()],
    levels: [newLevel(), newLevel()],
  };
}

/** A draft of an earlier visit, whose keys would be given a second time. */
export function withNewKeys({ record, questions }: Draft): Draft {
  return {
    record,
    questions: questions.map((question) => ({
      ...question,
      key: next_key++,
      options: question.options.map(({ id, description }) => newOption(id, description)),
      levels: question.levels.map(({ text }) => newLevel(text)),
    })),
  };
}

/** The same question under an id of its own. */
export function duplicateOf(question: DraftQuestion, taken: readonly string[]): DraftQuestion {
  return {
    ...question,
    key: next_key++,
    id: freeId(`${question.id}_copy`, taken),
    options: question.options.map(({ id, description }) => newOption(id, description)),
    levels: question.levels.map(({ text }) => newLevel(text)),
  };
}

function freeId(wanted: string, taken: readonly string[]): string {
  let id = wanted;
  for (let number = 2; taken.includes(id); number++) id = `${wanted}_${number}`;
  return id;
}

/** Returns the list with an item moved one place earlier (-1) or later (1); unchanged at its ends. */
export function moved<T>(items: readonly T[], index: number, step: -1 | 1): readonly T[] {
  const item = items[index];
  const other = items[index + step];
  if (item === undefined || other === undefined) return items;
  return items.with(index, other).with(index + step, item);
}

/**
 * Complaints about what a request cannot say, by the field's name. These are names that are missing or used twice, a
 * record that is not JSON, and a record or question that is empty. Everything else is the service's to refuse.
 */
export function complaintsAbout({ record, questions }: Draft): ReadonlyMap<string, string> {
  const complaints = new Map(emptyPartsOf({ record, questions }));
  if (record.kind === 'json' && jsonRecordOf(record.text) === null) {
    complaints.set('state', 'This is not a JSON object or array. Mend it, or send it as text.');
  }
  for (const [id, at] of repeated(questions.map(({ id }) => id))) {
    const { key } = questions[at] ?? { key: 0 };
    complaints.set(`id-${key}`, nameComplaint(id, 'question'));
  }
  for (const options of questions.map(optionsOf)) {
    for (const [id, at] of repeated(options.map(({ id }) => id))) {
      complaints.set(`option-${options[at]?.key}`, nameComplaint(id, 'option'));
    }
  }
  return complaints;
}

/** Complaints about parts that would be answered and charged and say nothing, by the field's name. */
export function emptyPartsOf({ record, questions }: Draft): ReadonlyMap<string, string> {
  const complaints = new Map<string, string>();
  if (isEmptyRecord(record)) complaints.set('state', 'Write a record, or load one from a file.');
  if (questions.length === 0) complaints.set('questions', 'Add a question first.');
  for (const question of questions.filter(isEmptyQuestion)) {
    complaints.set(`instructions-${question.key}`, 'Write the question.');
  }
  return complaints;
}

function isEmptyRecord({ kind, text }: DraftRecord): boolean {
  return text.trim() === '' || (kind === 'json' && /^[\s[\]{}]*$/.test(text));
}

/** A question that says nothing but names asks nothing. */
function isEmptyQuestion({ type, instructions, yes, no, options, levels }: DraftQuestion): boolean {
  const texts: Readonly<Record<QuestionType, readonly string[]>> = {
    noul: [yes, no],
    choice: options.map(({ description }) => description),
    score: levels.map(({ text }) => text),
  };
  return [instructions, ...texts[type]].every((text) => text.trim() === '');
}

/** The options that are sent: those of a question of another type are only kept. */
function optionsOf({ type, options }: DraftQuestion): readonly DraftOption[] {
  switch (type) {
    case 'choice':
      return options;
    case 'noul':
    case 'score':
      return [];
  }
}

function nameComplaint(id: string, what: string): string {
  return id === '' ? `Every ${what} needs a name.` : `Another ${what} has this name.`;
}

/** Returns names that are empty or repeated, with their indexes. */
function repeated(ids: readonly string[]): readonly (readonly [id: string, at: number])[] {
  return ids.flatMap((id, at) => (id === '' || ids.indexOf(id) < at ? [[id, at] as const] : []));
}

/** Returns the JSON object or array of a text; null for anything else. */
export function jsonRecordOf(text: string): JsonValue | null {
  try {
    const value = readJson(text);
    return isJsonObject(value) || isJsonArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** Returns the body of the draft's request. */
export function bodyOf({ record, questions }: Draft, { model, mode }: Asking): JsonObject<JsonValue> {
  return objectOf([
    ['model', model],
    ['mode', mode ?? undefined],
    ['state', record.kind === 'text' ? record.text : (jsonRecordOf(record.text) ?? record.text)],
    ['questions', JsonObject.of(questions.map((question) => [question.id, questionBody(question)]))],
  ]);
}

function questionBody(question: DraftQuestion): JsonObject<JsonValue> {
  const { type, instructions } = question;
  return objectOf([
    ['type', type],
    ['instructions', instructions === '' ? undefined : instructions],
    ...fieldsOfType(question),
  ]);
}

type Member = readonly [name: string, value: JsonValue | undefined];

function fieldsOfType({ type, yes, no, threshold, options, levels }: DraftQuestion): readonly Member[] {
  switch (type) {
    case 'noul': {
      const described = objectOf([
        ['true', yes === '' ? undefined : yes],
        ['false', no === '' ? undefined : no],
      ]);
      return [
        ['criteria', described.names.length === 0 ? undefined : described],
        ['threshold', threshold ?? undefined],
      ];
    }
    case 'choice': {
      const described = options.map(({ id, description }) => [id, description || null] as const);
      return [['criteria', JsonObject.of<JsonValue>(described)]];
    }
    case 'score':
      return [['criteria', levels.map(({ text }) => text)]];
  }
}

function objectOf(members: readonly Member[]): JsonObject<JsonValue> {
  const given = members.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return JsonObject.of(given);
}

/**
 * Returns a JSON body in the shape of the form, with its model and mode; a sentence where the form cannot
 * show it.
 */
export function draftOf(
  body: JsonValue,
): { readonly draft: Draft; readonly asking: Partial<Asking> } | string {
  if (!isJsonObject(body)) return 'The request is not a JSON object.';
  const state = body.get('state') ?? '';
  const asked = body.get('questions') ?? new JsonObject<JsonValue>([], []);
  if (typeof state !== 'string' && !isJsonObject(state) && !isJsonArray(state))
    return '"state" is neither a text nor an object.';
  if (!isJsonObject(asked)) return '"questions" is not an object.';
  const questions: DraftQuestion[] = [];
  for (const [id, value] of asked.entries()) {
    const question = questionOf(id, value);
    if (typeof question === 'string') return question;
    questions.push(question);
  }
  const model = body.get('model');
  const mode = body.get('mode');
  const record: DraftRecord =
    typeof state === 'string' ? { kind: 'text', text: state } : { kind: 'json', text: prettyJson(state) };
  return {
    draft: { record, questions },
    asking: {
      ...(typeof model === 'string' ? { model } : {}),
      ...(isMode(mode) ? { mode } : {}),
    },
  };
}

function questionOf(id: string, body: JsonValue): DraftQuestion | string {
  if (!isJsonObject(body)) return `The question "${id}" is not an object.`;
  const type = body.get('type');
  if (!isQuestionType(type))
    return `The question "${id}" has none of the types ${new Intl.ListFormat('en-GB').format(QUESTION_TYPES)}.`;
  const instructions = body.get('instructions') ?? '';
  if (typeof instructions !== 'string') return `The instructions of "${id}" are not a text.`;
  const criteria = body.get('criteria') ?? null;
  const empty = { ...newQuestion(type, []), id, instructions };
  switch (type) {
    case 'noul': {
      const threshold = body.get('threshold');
      if (criteria !== null && !isJsonObject(criteria)) return `The criteria of "${id}" are not an object.`;
      const yes = criteria?.get('true') ?? criteria?.get('yes') ?? '';
      const no = criteria?.get('false') ?? criteria?.get('no') ?? '';
      if (typeof yes !== 'string' || typeof no !== 'string') return `A criterion of "${id}" is not a text.`;
      return { ...empty, yes, no, threshold: isProbability(threshold) ? threshold : null };
    }
    case 'choice': {
      if (!isJsonObject(criteria)) return `The criteria of "${id}" are not an object.`;
      const texts = textsOf(criteria.values);
      if (texts === null) return `A description of "${id}" is not a text.`;
      return { ...empty, options: criteria.names.map((name, at) => newOption(name, texts[at])) };
    }
    case 'score': {
      if (!isJsonArray(criteria)) return `The criteria of "${id}" are not an array.`;
      const texts = textsOf(criteria);
      if (texts === null) return `A level of "${id}" is not a text.`;
      return { ...empty, levels: texts.map((text) => newLevel(text)) };
    }
  }
}

/** Returns descriptions for the form, where null is an empty one; null if one is not a text. */
function textsOf(values: readonly JsonValue[]): readonly string[] | null {
  const texts = values.map((value) => (value === null ? '' : value));
  return texts.every((text) => typeof text === 'string') ? texts : null;
}

/** Returns true for a threshold that counts: others are ignored (contract: it is never an error). */
export function isProbability(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}
