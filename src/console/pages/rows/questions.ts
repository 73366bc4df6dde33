import { isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { objectIn } from '../object-in.ts';
import { type AskedQuestion, askedQuestions } from '../playground/asked.ts';
import { bodyOf, complaintsAbout, draftOf } from '../playground/draft.ts';
import { EXAMPLES, exampleBody } from '../playground/examples.ts';
import type { KeptWork } from '../playground/kept-work.ts';
import type { ChosenQuestions } from './run-setup.ts';

/** Any: only the questions of the request are looked at. */
const ASKING = { model: '', mode: null };

/** Returns the questions that can be chosen: of saved requests, of the playground's draft, and of examples. */
export function questionChoices({ draft, requests }: KeptWork): readonly ChosenQuestions[] {
  const saved = requests.map(({ name, body }) => choice(`saved ${name}`, name, objectIn(body)));
  const written =
    draft === undefined ? null : draft.json === null ? bodyOf(draft.draft, ASKING) : objectIn(draft.json);
  const examples = EXAMPLES.map((example) =>
    choice(`example ${example.name}`, `Example: ${example.name}`, exampleBody(example)),
  );
  const all = [...saved, choice('draft', "The playground's draft", written), ...examples];
  return all.filter((one) => one !== null);
}

function choice(value: string, label: string, body: JsonObject<JsonValue> | null): ChosenQuestions | null {
  const questions = body?.get('questions');
  const is_asked = isJsonObject(questions) && questions.names.length > 0;
  return is_asked ? { value, label, body: writeJson(questions) } : null;
}

/** Returns the chosen questions as they are shown. */
export function askedIn(questions: ChosenQuestions | null): readonly AskedQuestion[] {
  const body = objectIn(questions?.body ?? '');
  return body === null ? [] : askedQuestions(new JsonObject<JsonValue>(['questions'], [body]));
}

/** Returns why questions cannot be asked; undefined where they can. */
export function questionComplaint(questions: JsonObject<JsonValue>): string | undefined {
  const read = draftOf(new JsonObject<JsonValue>(['state', 'questions'], ['a record', questions]));
  // The service refuses what the form cannot show.
  if (typeof read === 'string') return undefined;
  const [complaint] = complaintsAbout(read.draft).values();
  return complaint === undefined ? undefined : `${complaint} Change the questions in the playground.`;
}
