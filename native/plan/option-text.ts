import type { JsonValue } from '../../src/json/json-value.ts';
import type { TextReader } from './question-texts.ts';
import { text, trim } from './render.ts';

/** Returns the text without differences in case, spaces and hyphens, to compare an id with its description. */
function plain(value: string): string {
  return value.toLowerCase().replaceAll(' ', '_').replaceAll('-', '_');
}

/**
 * Returns an option's text for the model: its id, and its description if that adds anything. `read` renders the
 * description within its own bounds.
 */
export function optionText(id: string, description: JsonValue, read: TextReader = text): string {
  const option = trim(id);
  const described = read(description);
  return described === '' || plain(described) === plain(option) ? option : `${option}: ${described}`;
}
