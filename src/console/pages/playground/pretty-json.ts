import { isJsonArray, isJsonObject, type JsonValue } from '../../../json/json-value.ts';

const INDENT = '  ';

/**
 * Returns the value as indented JSON, with the members of objects in their own order, whatever their names.
 */
export function prettyJson(value: JsonValue, margin = ''): string {
  const inner = margin + INDENT;
  if (isJsonArray(value)) {
    if (value.length === 0) return '[]';
    const items = value.map((item) => inner + prettyJson(item, inner));
    return `[\n${items.join(',\n')}\n${margin}]`;
  }
  if (isJsonObject(value)) {
    if (value.names.length === 0) return '{}';
    const members = value
      .entries()
      .map(([name, member]) => `${inner}${JSON.stringify(name)}: ${prettyJson(member, inner)}`);
    return `{\n${members.join(',\n')}\n${margin}}`;
  }
  return JSON.stringify(value);
}
