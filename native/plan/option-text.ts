import type { JsonValue } from '../../src/json/json-value.ts';
import type { TextReader } from './question-texts.ts';
import { text, trim } from './render.ts';

/** An id and a description that differ in case, spaces and hyphens only say the same thing twice. */
function plain(value: string): string {
  return value.toLowerCase().replaceAll(' ', '_').replaceAll('-', '_');
}

/**
 * An option as the model reads it: its id, with its description where that says more than the id. `read` gives the
 * description as text, within its own bounds.
 */
export function optionText(id: string, description: JsonValue, read: TextReader = text): string {
  const option = trim(id);
  const described = read(description);
  return described === '' || plain(described) === plain(option) ? option : `${option}: ${described}`;
}
