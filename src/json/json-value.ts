/** Any value that JSON can carry: what a client may send as a record, as instructions or as a description. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject<JsonValue>;

/**
 * A JSON object: names and values in the order in which they were written, each name once. Nothing is keyed by a name.
 * JavaScriptCore's own hash of strings has no seed, so a client could choose names that collide in any object, Map or
 * Set.
 */
export class JsonObject<Value> {
  /** `values[i]` is the value of `names[i]`. */
  constructor(
    readonly names: readonly string[],
    readonly values: readonly Value[],
    /** A name that its text has more than once, of which only the last value is here; null normally. */
    readonly repeated: string | null = null,
  ) {}

  /** The value of a name, or undefined where the object has none of it. Takes time by the number of names. */
  get(name: string): Value | undefined {
    const index = this.names.indexOf(name);
    return index < 0 ? undefined : this.values[index];
  }

  /** The object with this value for a name: in the name's place, or at the end where it had none of it. */
  with(name: string, value: Value): JsonObject<Value> {
    const index = this.names.indexOf(name);
    return index < 0
      ? new JsonObject([...this.names, name], [...this.values, value], this.repeated)
      : new JsonObject(this.names, this.values.with(index, value), this.repeated);
  }
}

/** Whether the value is a JSON object: neither null nor an array. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject<JsonValue> {
  return value instanceof JsonObject;
}

/** Whether the value is a JSON array. */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** What a value is, in words for its sender: "an array", "a number". */
export function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (isJsonArray(value)) return 'an array';
  return isJsonObject(value) ? 'an object' : `a ${typeof value}`;
}

/**
 * A value that `JSON.parse` gave as a `JsonValue`: for values of our own, since objects are keyed by their names until
 * here. Members that are undefined are left out, as by `JSON.stringify`. Throws a TypeError for what JSON cannot carry.
 */
export function jsonValueOf(value: unknown): JsonValue {
  if (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  ) {
    return value;
  }
  if (Array.isArray(value)) return value.map(jsonValueOf);
  if (typeof value !== 'object') throw new TypeError(`JSON has no ${typeof value}.`);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return new JsonObject(
    members.map(([name]) => name),
    members.map(([, member]) => jsonValueOf(member)),
  );
}
