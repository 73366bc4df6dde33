import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { isQuestionType, type QuestionType } from '../../../questions/types-and-modes.ts';
import { prettyJson } from './pretty-json.ts';

/** The languages in which a request can be copied. */
export const LANGUAGES = ['curl', 'typescript', 'python'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The environment variable of the key in snippets, because a key is never shown again. */
export const KEY_VARIABLE = 'TDS_API_KEY';

/** The milliseconds that the contract advises clients to wait. */
const TIMEOUT_MS = 120_000;

/** Returns the request as a complete program, for a key in `KEY_VARIABLE`. */
export function snippet(language: Language, origin: string, body: JsonObject<JsonValue>): string {
  switch (language) {
    case 'curl':
      return curl(origin, body);
    case 'typescript':
      return typescript(origin, body);
    case 'python':
      return python(origin, body);
  }
}

/**
 * Returns the curl command. A quoted here-document keeps any text unchanged, and no line of JSON is just its
 * last word.
 */
function curl(origin: string, body: JsonObject<JsonValue>): string {
  return `curl -s ${origin}/v1/decisions \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H 'Content-Type: application/json' \\
  --data-binary @- <<'JSON'
${prettyJson(body)}
JSON`;
}

/**
 * Returns the TypeScript program. Questions go through the SDK's functions, so that answers have the types of
 * their questions.
 */
function typescript(origin: string, body: JsonObject<JsonValue>): string {
  const questions = membersOf(body.get('questions'));
  const used = [...new Set(questions.map(([, question]) => typeOf(question)))].filter(
    (type) => type !== null,
  );
  const members = membersOf(body).map(([name, value]) =>
    name === 'questions'
      ? `  questions: {\n${questions.map(([id, question]) => `    ${jsName(id)}: ${jsQuestion(question)},\n`).join('')}  },`
      : `  ${jsName(name)}: ${jsValue(value, '  ')},`,
  );
  return `// npm install @typesafe-ai/sdk
import { ${[...used, 'TypeSafeClient'].join(', ')} } from '@typesafe-ai/sdk';

const client = new TypeSafeClient({
  apiKey: process.env.${KEY_VARIABLE},
  baseURL: ${JSON.stringify(origin)},
  timeout: ${TIMEOUT_MS},
});

const request = {
${members.join('\n')}
};

const { answers } = await client.systemOne(request);
console.log(JSON.stringify(answers, null, 2));`;
}

/**
 * Returns the Python program. The SDK compresses bodies by default, and rejects fields of questions that it
 * does not know.
 */
function python(origin: string, body: JsonObject<JsonValue>): string {
  return `# pip install typesafe-sdk
import os

from typesafe_sdk import TypeSafeClient

request = ${pyValue(body)}

with TypeSafeClient(
    api_key=os.environ["${KEY_VARIABLE}"],
    base_url=${JSON.stringify(origin)},
    timeout=${TIMEOUT_MS / 1_000},
    compression=False,
) as client:
    result = client.system_one(
        state=request["state"],
        questions=request["questions"],
        model=request["model"],
        extra_body=request,
    )

print(result.model_dump_json(indent=2))`;
}

function membersOf(value: JsonValue | undefined): readonly (readonly [name: string, value: JsonValue])[] {
  return isJsonObject(value) ? value.entries() : [];
}

function typeOf(question: JsonValue): QuestionType | null {
  const type = isJsonObject(question) ? question.get('type') : undefined;
  return isQuestionType(type) ? type : null;
}

function jsQuestion(question: JsonValue): string {
  const type = typeOf(question);
  if (type === null || !isJsonObject(question)) return jsValue(question, '    ');
  const criteria = question.get('criteria');
  const values = [question.get('instructions') ?? null, ...(criteria === undefined ? [] : [criteria])];
  const made = `${type}(${values.map((value) => jsValue(value, '    ')).join(', ')})`;
  const threshold = question.get('threshold');
  return threshold === undefined ? made : `{ ...${made}, threshold: ${jsValue(threshold, '')} }`;
}

function jsValue(value: JsonValue, margin: string): string {
  const inner = `${margin}  `;
  if (isJsonArray(value)) {
    return value.length === 0
      ? '[]'
      : `[\n${value.map((item) => `${inner}${jsValue(item, inner)},\n`).join('')}${margin}]`;
  }
  if (isJsonObject(value)) {
    const members = membersOf(value);
    return members.length === 0
      ? '{}'
      : `{\n${members.map(([name, member]) => `${inner}${jsName(name)}: ${jsValue(member, inner)},\n`).join('')}${margin}}`;
  }
  return JSON.stringify(value);
}

function jsName(name: string): string {
  if (/^[A-Za-z_$][\w$]*$/.test(name) && name !== '__proto__') return name;
  // The plain name would set the object's prototype.
  return name === '__proto__' ? '["__proto__"]' : JSON.stringify(name);
}

/** Returns a value in Python, which shares JSON's strings but not its constants. */
function pyValue(value: JsonValue, margin = ''): string {
  const inner = `${margin}    `;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (isJsonArray(value)) {
    return value.length === 0
      ? '[]'
      : `[\n${value.map((item) => `${inner}${pyValue(item, inner)},\n`).join('')}${margin}]`;
  }
  if (value instanceof JsonObject) {
    const members = membersOf(value);
    return members.length === 0
      ? '{}'
      : `{\n${members.map(([name, member]) => `${inner}${JSON.stringify(name)}: ${pyValue(member, inner)},\n`).join('')}${margin}}`;
  }
  return JSON.stringify(value);
}
