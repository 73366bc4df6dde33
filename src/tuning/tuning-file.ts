import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { HashKey } from '../hashing/half-siphash.ts';
import { isJsonObject, type JsonValue } from '../json/json-value.ts';
import { plainJson } from '../json/plain-json.ts';
import { readJsonOr } from '../json/read-json.ts';
import { type WritableJson, writeJson } from '../json/write-json.ts';
import {
  classesOf,
  MODES,
  parseQuestion,
  type Question,
  questionBody,
  scoreCount,
} from '../questions/question.ts';
import { InvalidCriteria } from '../questions/question-fields.ts';
import type { Correction } from './correction.ts';
import { BUCKETS } from './record-words.ts';
import { VECTOR_SIZE, type VectorPart } from './vector-part.ts';

/** A file of another version is refused, because its numbers may have another meaning. */
const VERSION = 1;
/** The version of files with vectors, which earlier programs cannot read. Those of version 2 had other numbers. */
const VERSION_WITH_VECTORS = 3;

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** Far beyond what a fit gives, and small enough that every sum of them is a finite number. */
const WEIGHT_MAX = 1e6;
const Weight = Type.Number({ minimum: -WEIGHT_MAX, maximum: WEIGHT_MAX });
/** The greatest length of a vector for one class, far beyond what a fit gives. */
const VECTOR_NORM_MAX = 1_000;
/** Some milliseconds of reading, of the shortest lines. */
export const LINES_OF_SLICE = 32;
const Share = Type.Number({ minimum: 0, maximum: 1 });
const Integer32 = Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 });
const CLOSED = { additionalProperties: false };
const BeforeAndAfter = <Schema extends TSchema>(value: Schema) =>
  Type.Object({ before: value, after: value }, CLOSED);

/** The first line of a file of any version. */
const Versioned = Type.Object({ format: Type.Literal('tds-tuning'), version: Type.Number() });

/** The first line of the file: the facts that all corrections depend on. */
const Header = Type.Object(
  {
    format: Type.Literal('tds-tuning'),
    version: Type.Union([Type.Literal(VERSION), Type.Literal(VERSION_WITH_VECTORS)]),
    /** The checksum of the tuned weights, or the fingerprint of upstreams. */
    weights_sha256: Sha256,
    profile: Type.String(),
    /** The catalog's id of the tuned model; null where it was tuned from a file. */
    model: Type.Union([Type.String(), Type.Null()]),
    /** The key of the hashed words. */
    hash_key: Type.Tuple([Integer32, Integer32]),
    fitted_on: Type.Object(
      {
        cases_sha256: Sha256,
        records: Type.Integer({ minimum: 1 }),
        seed: Type.Integer({ minimum: 0 }),
      },
      CLOSED,
    ),
    /** The number of lines that follow. */
    questions: Type.Integer({ minimum: 1 }),
  },
  CLOSED,
);
export interface TuningHeader
  extends Readonly<Omit<Static<typeof Header>, 'format' | 'version' | 'questions' | 'hash_key'>> {
  readonly hash_key: HashKey;
}

/** A line of the file: the correction of one question in one mode. Classes are those of `identityOf`. */
const Line = Type.Object(
  {
    question: Type.Unknown(),
    mode: Type.Union(MODES.map((mode) => Type.Literal(mode))),
    /** The factor of uncalibrated scores. */
    scale: Type.Number({ exclusiveMinimum: 0, maximum: WEIGHT_MAX }),
    shift: Type.Array(Weight, { minItems: 2 }),
    words: Type.Union([
      Type.Null(),
      Type.Object(
        {
          buckets: Type.Array(Type.Integer({ minimum: 0, maximum: BUCKETS - 1 })),
          weights: Type.Array(Weight),
        },
        CLOSED,
      ),
    ]),
    /** Absent in files of earlier versions. */
    vector: Type.Optional(
      Type.Union([
        Type.Null(),
        Type.Object({ centres: Type.Array(Weight), weights: Type.Array(Weight) }, CLOSED),
      ]),
    ),
    labels: Type.Integer({ minimum: 1 }),
    /** Measured out of fold. */
    accuracy: BeforeAndAfter(Share),
    loss: BeforeAndAfter(Type.Number({ minimum: 0 })),
    /** The share of each class among the answers at tuning, out of fold. */
    answer_shares: Type.Array(Share),
  },
  CLOSED,
);

/** A question with its correction, and the measured effect. */
export interface TuningEntry
  extends Correction,
    Readonly<Pick<Static<typeof Line>, 'mode' | 'labels' | 'accuracy' | 'loss'>> {
  readonly question: Question;
  readonly answer_shares: readonly number[];
}

/** The content of a tuning file. */
export interface TuningContent {
  readonly header: TuningHeader;
  readonly entries: readonly TuningEntry[];
}

/** A tuning file cannot be used. The message ends a sentence that begins with the file's name. */
export class TuningUnusable extends Error {
  override readonly name = 'TuningUnusable';
}

/** Returns the text of a tuning file: a JSON line for the header, and one for each question. */
export function writeTuning({ header, entries }: TuningContent): string {
  const has_vectors = entries.some(({ vector }) => vector !== null);
  const version = has_vectors ? VERSION_WITH_VECTORS : VERSION;
  const first = { format: 'tds-tuning', version, ...header, questions: entries.length };
  const lines: WritableJson[] = [
    first,
    ...entries.map(({ question, words, vector, ...numbers }) => ({
      question: questionBody(question),
      ...numbers,
      words: words === null ? null : { ...words },
      ...(vector === null ? {} : { vector: { ...vector } }),
    })),
  ];
  return lines.map((line) => `${writeJson(line)}\n`).join('');
}

/** Parses a tuning file. Throws `TuningUnusable` for any other text, and for a truncated one. */
export function readTuning(text: string): TuningContent {
  const slices = readingSlices(text);
  for (;;) {
    const slice = slices.next();
    if (slice.done === true) return slice.value;
  }
}

/** Does the same, and awaits `pause` after every few lines: a client may send thousands. */
export async function readTuningInSlices(text: string, pause: () => Promise<void>): Promise<TuningContent> {
  const slices = readingSlices(text);
  for (;;) {
    const slice = slices.next();
    if (slice.done === true) return slice.value;
    await pause();
  }
}

function* readingSlices(text: string): Generator<undefined, TuningContent> {
  const { questions, ...header } = readTuningHeader(text);
  const [, ...lines] = text.split('\n');
  // The last line ends with a line break, too.
  if (lines.length !== questions + 1 || lines.at(-1) !== '') {
    throw new TuningUnusable('is not whole: copy it again, or tune again');
  }
  const entries: TuningEntry[] = [];
  for (const [index, line] of lines.slice(0, -1).entries()) {
    if (index > 0 && index % LINES_OF_SLICE === 0) yield;
    entries.push(entryOf(line, index + 2));
  }
  return { header, entries };
}

/** Parses the first line of a tuning file, and none of its corrections. Throws `TuningUnusable`. */
export function readTuningHeader(text: string): TuningHeader & { readonly questions: number } {
  const [first = ''] = text.split('\n', 1);
  const header = plainJson(readJsonOr(first, null));
  if (Value.Check(Versioned, header) && ![VERSION, VERSION_WITH_VECTORS].includes(header.version)) {
    throw new TuningUnusable('was made by another version of this program: tune again');
  }
  if (!Value.Check(Header, header)) throw new TuningUnusable('is not a tuning file');
  const { format: _format, version: _version, ...own } = header;
  return own;
}

function entryOf(line: string, line_number: number): TuningEntry {
  // A client may have written the line.
  const read = readJsonOr(line, null);
  const question = questionIn(read);
  // The question keeps its names as they are read: they may be many.
  const value = isJsonObject(read) ? plainJson(read.with('question', null)) : undefined;
  if (question === undefined || !Value.Check(Line, value)) {
    throw new TuningUnusable(`is not a tuning file: its line ${line_number} is no correction`);
  }
  const { shift, words, vector = null, answer_shares } = value;
  const classes = shift.length;
  const is_whole =
    classes === classesOf(question).length &&
    answer_shares.length === classes &&
    (words === null || (words.weights.length === words.buckets.length * classes && ascends(words.buckets))) &&
    (vector === null || isWholeVector(vector, question));
  if (!is_whole) {
    throw new TuningUnusable(
      `is damaged: line ${line_number} has other numbers than its question has options`,
    );
  }
  if (vector !== null && longest(vector) > VECTOR_NORM_MAX) {
    throw new TuningUnusable(`is damaged: the vector in line ${line_number} is too long`);
  }
  return { ...value, vector, question };
}

function isWholeVector({ centres, weights }: VectorPart, question: Question): boolean {
  return centres.length === scoreCount(question) && weights.length === centres.length * VECTOR_SIZE;
}

/** Returns the length of the longest of a part's vectors, one for each class. */
function longest({ centres, weights }: VectorPart): number {
  const lengths = centres.map((_, state) =>
    Math.hypot(...weights.slice(state * VECTOR_SIZE, (state + 1) * VECTOR_SIZE)),
  );
  return Math.max(...lengths);
}

/** Returns the question as in a request; undefined where there is none. */
function questionIn(line: JsonValue): Question | undefined {
  const read = isJsonObject(line) ? parseQuestion(line.get('question')) : null;
  return read === null || read instanceof InvalidCriteria ? undefined : read.question;
}

function ascends(buckets: readonly number[]): boolean {
  return buckets.every((bucket, at) => at === 0 || (buckets[at - 1] ?? 0) < bucket);
}
