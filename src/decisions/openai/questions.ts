import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { isOptionCount } from '../../questions/question-fields.ts';
import { DecisionRefusal } from '../refusal.ts';
import { contentOf, unfit } from './fields.ts';
import { OPENAI_QUESTION_SCHEMAS } from './schemas.ts';

/** A question of OpenAI's shape: in the contract's shape, with the values that its answer repeats. */
export interface OpenAiQuestion {
  readonly name: string | null;
  /** The question of the contract's shape. */
  readonly question: JsonObject<JsonValue>;
  /** The values of a choice, as sent; none for other types. */
  readonly values: readonly (string | boolean)[];
  /** The labels of a score's levels; none for other types. */
  readonly labels: readonly string[];
}

/** Returns the fields that are read of a valid question of OpenAI's shape. */
export function openAiQuestionFields(question: JsonObject<JsonValue>): readonly string[] {
  const type = question.get('type');
  return isOpenAiType(type) ? Object.keys(OPENAI_QUESTION_SCHEMAS[type].properties) : question.names;
}

/** The suffix of a boolean's text where a string of the same question has the same text. */
const BOOLEAN_SUFFIX = ' (boolean)';

function isOpenAiType(type: JsonValue | undefined): type is keyof typeof OPENAI_QUESTION_SCHEMAS {
  return typeof type === 'string' && Object.hasOwn(OPENAI_QUESTION_SCHEMAS, type);
}

/**
 * Returns one question, or its refusal: `invalid_question_type`, `invalid_criteria`, `invalid_request`. The paths of
 * images are added to `images`.
 */
export function questionOf(
  value: JsonValue,
  path: string,
  images: string[],
): OpenAiQuestion | DecisionRefusal {
  const type = isJsonObject(value) ? value.get('type') : undefined;
  if (!isJsonObject(value) || !isOpenAiType(type)) {
    return new DecisionRefusal('invalid_question_type', {
      message: 'The type of a question in a list must be "predicate", "choice" or "score".',
      param: `${path}.type`,
    });
  }
  const name = value.get('name') ?? null;
  if (name !== null && typeof name !== 'string') return unfit(`${path}.name`, '"name" must be a string.');
  const asked = value.get('instructions') ?? null;
  // Criteria may say it all, as in the contract. The AI SDK then sends none.
  const is_left_out = asked === null && type !== 'predicate';
  const instructions = is_left_out ? null : contentOf(asked, `${path}.instructions`, images);
  if (instructions instanceof DecisionRefusal) return instructions;
  switch (type) {
    case 'predicate':
      return { name, question: contractQuestion('noul', instructions), values: [], labels: [] };
    case 'choice':
      return choiceOf(value.get('choices'), name, instructions, `${path}.choices`);
    case 'score':
      return scoreOf(value.get('levels'), name, instructions, `${path}.levels`);
  }
}

function contractQuestion(
  type: string,
  instructions: JsonValue,
  criteria?: JsonValue,
): JsonObject<JsonValue> {
  const question = new JsonObject<JsonValue>(['type', 'instructions'], [type, instructions]);
  return criteria === undefined ? question : question.with('criteria', criteria);
}

function badCriteria(path: string, message: string): DecisionRefusal {
  return new DecisionRefusal('invalid_criteria', { message, param: path });
}

/** Returns the objects of a list of 2 to 255 options, or the refusal. */
function optionsOf(
  list: JsonValue | undefined,
  noun: string,
  path: string,
): readonly JsonObject<JsonValue>[] | DecisionRefusal {
  const count = isJsonArray(list) ? list.length : 0;
  if (!isJsonArray(list) || !isOptionCount(count)) {
    return badCriteria(path, `A list of 2 to 255 ${noun} is needed; ${count} were sent.`);
  }
  const options = list.filter(isJsonObject);
  return options.length === count ? options : badCriteria(path, `All ${noun} must be objects.`);
}

function descriptionOf(option: JsonObject<JsonValue>): string | null | undefined {
  const description = option.get('description') ?? null;
  return description === null || typeof description === 'string' ? description : undefined;
}

function choiceOf(
  list: JsonValue | undefined,
  name: string | null,
  instructions: JsonValue,
  path: string,
): OpenAiQuestion | DecisionRefusal {
  const options = optionsOf(list, 'choices', path);
  if (options instanceof DecisionRefusal) return options;
  const values: (string | boolean)[] = [];
  const descriptions: (string | null)[] = [];
  for (const [index, option] of options.entries()) {
    const value = option.get('value');
    const description = descriptionOf(option);
    if ((typeof value !== 'string' && typeof value !== 'boolean') || description === undefined) {
      return badCriteria(
        `${path}[${index}]`,
        'A choice has a "value", a string or a boolean, and may have a "description", a string.',
      );
    }
    if (values.includes(value)) return badCriteria(`${path}[${index}].value`, 'Each choice must be unique.');
    values.push(value);
    descriptions.push(description);
  }
  const criteria = new JsonObject<JsonValue>(optionIds(values), descriptions);
  return { name, question: contractQuestion('choice', instructions, criteria), values, labels: [] };
}

/** Returns the texts of the values, each unique: a boolean beside a string of the same text gets a suffix. */
function optionIds(values: readonly (string | boolean)[]): readonly string[] {
  return values.map((value) => {
    if (typeof value === 'string') return value;
    let id = String(value);
    while (values.includes(id)) id += BOOLEAN_SUFFIX;
    return id;
  });
}

function scoreOf(
  list: JsonValue | undefined,
  name: string | null,
  instructions: JsonValue,
  path: string,
): OpenAiQuestion | DecisionRefusal {
  const options = optionsOf(list, 'levels', path);
  if (options instanceof DecisionRefusal) return options;
  const labels: string[] = [];
  const descriptions: (string | null)[] = [];
  for (const [index, option] of options.entries()) {
    const label = option.get('label');
    const description = descriptionOf(option);
    if (typeof label !== 'string' || description === undefined) {
      return badCriteria(
        `${path}[${index}]`,
        'A level has a "label", a string, and may have a "description", a string.',
      );
    }
    labels.push(label);
    descriptions.push(description);
  }
  // Labels that only count, as the AI SDK sends them, tell the model nothing.
  const are_indexes = labels.every((label, index) => label === String(index));
  const levels = labels.map((label, index) => {
    const description = descriptions[index] ?? null;
    if (description === null) return label;
    return are_indexes ? description : `${label}: ${description}`;
  });
  return { name, question: contractQuestion('score', instructions, levels), values: [], labels };
}
