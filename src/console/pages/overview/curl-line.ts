import { JsonObject, jsonValueOf } from '../../../json/json-value.ts';
import { KEY_VARIABLE, snippet } from '../playground/snippets.ts';

const QUESTIONS = jsonValueOf({
  refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
});

const BODY = new JsonObject(
  ['model', 'state', 'questions'],
  ['decision-1', 'I was charged twice for order 8812. Please give the second payment back.', QUESTIONS],
);

/** Returns a command that asks the service at an address a question, with the reader's own key. */
export function curlLine(origin: string): string {
  return `${KEY_VARIABLE}='your key'\n${snippet('curl', origin, BODY)}`;
}
