import { Value } from '@sinclair/typebox/value';
import { isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { DecisionRefusal } from '../refusal.ts';
import { type LineId, LineIdSchema } from './schemas.ts';

/** The fields of the first line that every line has which does not say otherwise. */
const SHARED_FIELDS = ['questions', 'mode', 'model'] as const;

/** One line of a batch as a request, or why it is none. */
export interface LineRequest {
  /** Null where the line has none, or none that can be given back. */
  readonly id: LineId;
  /** The body of a decision. */
  readonly body: JsonObject<JsonValue> | DecisionRefusal;
}

/** Makes requests of the lines of one batch; `first` is the value of its first line. */
export class BatchLines {
  /** True where the first line is only a header: fields for the others, without a record. */
  readonly has_header: boolean;
  readonly #shared: readonly (readonly [name: string, value: JsonValue])[];

  constructor(first: JsonObject<JsonValue>) {
    const has = (name: string) => first.get(name) !== undefined;
    // Without questions, a line with an id is one whose record was forgotten.
    this.has_header = !has('state') && (has('questions') || (!has('id') && SHARED_FIELDS.some(has)));
    this.#shared = SHARED_FIELDS.flatMap((name) => {
      const value = first.get(name) ?? null;
      return value === null ? [] : [[name, value] as const];
    });
  }

  /** The request of a line, whose value that is. */
  request(line: JsonValue): LineRequest {
    if (!isJsonObject(line)) {
      const message = 'A line of a batch is a JSON object.';
      return { id: null, body: new DecisionRefusal('invalid_request', { message, status: 400 }) };
    }
    const id = line.get('id') ?? null;
    if (!Value.Check(LineIdSchema, id)) {
      const message = 'The id of a line is a string of at most 255 characters, or a whole number below 2^53.';
      return {
        id: null,
        body: new DecisionRefusal('invalid_request', { message, param: 'id', status: 400 }),
      };
    }
    return { id, body: this.#withShared(withoutId(line)) };
  }

  #withShared(line: JsonObject<JsonValue>): JsonObject<JsonValue> {
    return this.#shared.reduce(
      (body, [name, value]) => ((body.get(name) ?? null) === null ? body.with(name, value) : body),
      line,
    );
  }
}

/** A request has no id of its own. */
function withoutId({ names, values, repeated }: JsonObject<JsonValue>): JsonObject<JsonValue> {
  const at = names.indexOf('id');
  return at < 0
    ? new JsonObject(names, values, repeated)
    : new JsonObject(names.toSpliced(at, 1), values.toSpliced(at, 1), repeated);
}
