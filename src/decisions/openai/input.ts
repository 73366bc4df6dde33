import { StringTable } from '../../hashing/string-table.ts';
import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { readJsonOr } from '../../json/read-json.ts';
import { DecisionRefusal } from '../refusal.ts';
import { contentOf, stringField, unfit } from './fields.ts';

/**
 * Returns the record of OpenAI's `input`. A string, or one message of a user, is its content alone. Any other
 * list keeps its roles and order: each item is an object whose only name is the role, or the kind of call.
 * Outputs have the name of their call in place of its id. The paths of images are added to
 * `images`. Refuses input of another shape.
 */
export function recordOf(input: JsonValue | undefined, images: string[] = []): JsonValue | DecisionRefusal {
  if (typeof input === 'string') return input;
  if (!isJsonArray(input) || input.length === 0) {
    return unfit('input', '"input" must be a string or a list of messages.');
  }
  const calls = new CallNames();
  const turns: Turn[] = [];
  for (const [index, item] of input.entries()) {
    const turn = turnOf(item, calls, `input[${index}]`, images);
    if (turn instanceof DecisionRefusal) return turn;
    turns.push(turn);
  }
  const [only] = turns;
  if (only !== undefined && turns.length === 1 && only.kind === 'user') return only.value;
  return turns.map(({ kind, value }) => new JsonObject([kind], [value]));
}

/** One item of the input, with its role or its kind of call. */
interface Turn {
  readonly kind: string;
  readonly value: JsonValue;
}

const ROLES: readonly string[] = ['user', 'developer', 'system', 'assistant'];

/**
 * The names of the calls so far, by their ids. Clients choose the ids, so a Map must not have them as keys.
 */
class CallNames {
  readonly #ids = new StringTable();
  readonly #names: string[] = [];

  add(id: string, name: string): void {
    this.#names[this.#ids.intern(id)] = name;
  }

  /** Returns the name of an earlier call; undefined where none has that id. */
  find(id: string): string | undefined {
    return this.#ids.has(id) ? this.#names[this.#ids.intern(id)] : undefined;
  }
}

function turnOf(item: JsonValue, calls: CallNames, path: string, images: string[]): Turn | DecisionRefusal {
  if (!isJsonObject(item)) return unfit(path, 'An item of the input must be an object.');
  const type = item.get('type') ?? 'message';
  switch (type) {
    case 'message':
      return messageOf(item, path, images);
    case 'function_call':
      return callOf(item, 'arguments', type, calls, path);
    case 'custom_tool_call':
      return callOf(item, 'input', type, calls, path);
    case 'function_call_output':
    case 'custom_tool_call_output':
      return outputOf(item, type, calls, path, images);
    default:
      return unfit(
        `${path}.type`,
        'An item of the input must be a message, a call, or the output of a call.',
      );
  }
}

function messageOf(item: JsonObject<JsonValue>, path: string, images: string[]): Turn | DecisionRefusal {
  const role = stringField(item, 'role', path);
  if (role instanceof DecisionRefusal || !ROLES.includes(role)) {
    return unfit(`${path}.role`, 'The role must be "user", "developer", "system" or "assistant".');
  }
  const value = contentOf(item.get('content'), `${path}.content`, images);
  return value instanceof DecisionRefusal ? value : { kind: role, value };
}

function callOf(
  item: JsonObject<JsonValue>,
  given: 'arguments' | 'input',
  kind: string,
  calls: CallNames,
  path: string,
): Turn | DecisionRefusal {
  const name = stringField(item, 'name', path);
  if (name instanceof DecisionRefusal) return name;
  const id = stringField(item, 'call_id', path);
  if (id instanceof DecisionRefusal) return id;
  const text = stringField(item, given, path);
  if (text instanceof DecisionRefusal) return text;
  calls.add(id, name);
  // Arguments are JSON as text: the model reads their fields as those of any record.
  const value = given === 'arguments' ? readJsonOr(text, text) : text;
  return { kind, value: new JsonObject<JsonValue>(['name', given], [name, value]) };
}

function outputOf(
  item: JsonObject<JsonValue>,
  kind: string,
  calls: CallNames,
  path: string,
  images: string[],
): Turn | DecisionRefusal {
  const id = stringField(item, 'call_id', path);
  if (id instanceof DecisionRefusal) return id;
  const name = calls.find(id);
  if (name === undefined) return unfit(`${path}.call_id`, 'An output must have the id of an earlier call.');
  const output = contentOf(item.get('output'), `${path}.output`, images);
  if (output instanceof DecisionRefusal) return output;
  return { kind, value: new JsonObject<JsonValue>(['name', 'output'], [name, output]) };
}
