import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { parseDecisionRequest } from '../decisions/request.ts';
import { Refusal } from '../errors/errors.ts';
import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { JsonError, readJson } from '../json/read-json.ts';
import { writeJson } from '../json/write-json.ts';
import { QuestionSchema } from '../questions/question.ts';
import { type LabelledQuestion, labelOf } from './label.ts';

const Share = Type.Number({ minimum: 0 });

/** A question of the API with its right answer, and with the annotators' shares where they disagreed. */
const LabelledQuestionSchema = Type.Intersect([
  QuestionSchema,
  Type.Object({
    answer: Type.Union([Type.Boolean(), Type.String(), Type.Integer({ minimum: 0 })], {
      description:
        'true or false for a noul, the id of an option for a choice, the index of a level for a score',
    }),
    soft: Type.Optional(
      Type.Union([Type.Array(Share), Type.Record(Type.String(), Share), Type.Null()], {
        description: 'noul: the shares of no and of yes; choice: option id to share; score: a share a level',
      }),
    ),
  }),
]);

/** A line of a cases file: a record, its set, and questions about it with known answers. */
export const CaseSchema = Type.Object({
  src: Type.String({ description: 'The set that the record belongs to.' }),
  state: Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown()), Type.Array(Type.Unknown())]),
  questions: Type.Array(LabelledQuestionSchema, { minItems: 1 }),
});
/** A record of a cases file, ready to be asked. */
export interface EvalCase {
  /** The set of the record. */
  readonly source: string;
  /** The SHA-256 of record and questions, in hex, which stands for them in stored files. */
  readonly digest: string;
  /** The SHA-256 of the record alone, in hex: records on several lines are one. */
  readonly record: string;
  readonly state: JsonValue;
  readonly questions: readonly LabelledQuestion[];
}

/** A cases file cannot be used. The message is one sentence that names the line at fault. */
export class CasesError extends Error {
  override readonly name = 'CasesError';
}

/** Returns the record in a line of a cases file. Throws `CasesError` naming `line_number`. */
export function parseCase(line: string, line_number: number): EvalCase {
  const fail = (reason: string) =>
    new CasesError(`Line ${line_number} of the cases is not usable: ${reason}`);
  const { value, request } = parseLine(line);
  if (!Value.Check(CaseSchema, value)) {
    const first = Value.Errors(CaseSchema, value).First();
    throw fail(`${first?.path || 'the line'}: ${first?.message ?? 'not valid JSON'}.`);
  }
  const asked = parseDecisionRequest(request, null, Number.POSITIVE_INFINITY);
  if (asked instanceof Refusal) throw fail(`${asked.param ?? 'the line'}: ${asked.message}`);
  const questions = asked.questions.map(({ question }, index) => {
    const raw = value.questions[index];
    const labelled = raw === undefined ? undefined : labelOf(question, raw);
    if (labelled === undefined) throw fail(`/questions/${index}: the answer is none of the question's.`);
    return labelled;
  });
  const digest = sha256(writeJson([asked.state, questions.map(({ question }) => ({ ...question }))]));
  const record = sha256(writeJson(asked.state));
  return { source: value.src, digest, record, state: asked.state, questions };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Returns a line as a plain value, for the check, and its record and questions as the service would read
 * them.
 */
function parseLine(line: string): { readonly value: unknown; readonly request: JsonObject<JsonValue> } {
  const none = new JsonObject<JsonValue>([], []);
  try {
    const read = readJson(line);
    if (!isJsonObject(read)) return { value: undefined, request: none };
    const asked = read.get('questions');
    const questions = isJsonArray(asked) ? asked : [];
    const numbered = JsonObject.of(questions.map((question, index) => [String(index), question]));
    const request = new JsonObject<JsonValue>(['state', 'questions'], [read.get('state') ?? null, numbered]);
    return { value: JSON.parse(line), request };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { value: undefined, request: none };
  }
}
