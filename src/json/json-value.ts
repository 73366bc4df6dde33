/** Any JSON value, as a client may send it for a record, instructions or a description. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject<JsonValue>;

/**
 * A JSON object: names and values in their written order, each name once. It has no hash table of names.
 * JavaScriptCore's own hash of strings has no seed, so a client could choose names that collide in any
 * object, Map or Set.
 */
export class JsonObject<Value> {
  /** `values[i]` is the value of `names[i]`. */
  constructor(
    readonly names: readonly string[],
    readonly values: readonly Value[],
    /** A name that occurs more than once in the text, whose last value is here; normally null. */
    readonly repeated: string | null = null,
  ) {}

  /** Returns an object of these members, which have a name each. */
  static of<Value>(members: readonly (readonly [name: string, value: Value])[]): JsonObject<Value> {
    return new JsonObject(
      members.map(([name]) => name),
      members.map(([, value]) => value),
    );
  }

  /** Returns the members in their order. */
  entries(): readonly (readonly [name: string, value: Value])[] {
    return this.values.map((value, at) => [this.names[at] ?? '', value]);
  }

  /** Returns the value of a name, or undefined. Takes time proportional to the number of names. */
  get(name: string): Value | undefined {
    const index = this.names.indexOf(name);
    return index < 0 ? undefined : this.values[index];
  }

  /** Returns the object with this value for a name: in the name's place, or at the end for a new name. */
  with(name: string, value: Value): JsonObject<Value> {
    const index = this.names.indexOf(name);
    return index < 0
      ? new JsonObject([...this.names, name], [...this.values, value], this.repeated)
      : new JsonObject(this.names, this.values.with(index, value), this.repeated);
  }
}

/** Returns true for a JSON object: neither null nor an array. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject<JsonValue> {
  return value instanceof JsonObject;
}

/** Returns true for a JSON array. */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Returns the kind of a value, in words for its sender: "an array", "a number". */
export function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (isJsonArray(value)) return 'an array';
  return isJsonObject(value) ? 'an object' : `a ${typeof value}`;
}

/**
 * Converts a value of our own from `JSON.parse`, whose objects are keyed by their names. Leaves out undefined
 * members, as `JSON.stringify` does. Throws a TypeError for values that JSON does not have.
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
  return JsonObject.of(members.map(([name, member]) => [name, jsonValueOf(member)]));
}
