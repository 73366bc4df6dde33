import { type LabelledQuestion, labelOf, type RawLabel } from '../../../eval/label.ts';
import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { parseQuestion, type Question } from '../../../questions/question.ts';
import { InvalidCriteria } from '../../../questions/question-fields.ts';
import { formatNumber } from '../format.ts';
import { objectIn } from '../object-in.ts';
import { type RowFile, recordIn } from '../rows/row-file.ts';
import type { LabelColumns } from './setup.ts';

/** A question about a row, with its right answer. */
export interface Label extends LabelledQuestion {
  /** Its name in the request. */
  readonly id: string;
}

/** A row that can be asked, because it has a record and a right answer. */
export interface LabelledRow {
  readonly row: number;
  readonly record: JsonValue;
  /** The questions with a right answer, as they are sent. Rows that are asked alike have the same object. */
  readonly questions: JsonValue;
  readonly labels: readonly Label[];
}

/** The rows of a file that can be asked, and why others cannot. */
export interface LabelledRows {
  readonly rows: readonly LabelledRow[];
  /** A sentence each. */
  readonly problems: readonly string[];
}

/** A question, as it is sent and as it is read. */
interface SentQuestion {
  readonly id: string;
  readonly body: JsonValue;
  readonly question: Question;
}

/** Fields of a cases file's question that are not sent. */
const LABEL_FIELDS = ['answer', 'soft'];

/** Returns true for the rows of a cases file of `tds eval`, whose questions are in the rows. */
export function isCasesFile({ rows }: Pick<RowFile, 'rows'>): boolean {
  const first = objectIn(rows[0] ?? '');
  const questions = first?.get('questions');
  return first?.get('state') !== undefined && isJsonArray(questions) && questions.some(isJsonObject);
}

/** Counts what is wrong with rows. */
class Problems {
  readonly #found = new Map<string, { count: number; readonly sentence: (count: string) => string }>();

  /** Counts a problem; the sentence is that of the first of its kind. */
  add(kind: string, sentence: (count: string) => string): void {
    const found = this.#found.get(kind);
    if (found === undefined) this.#found.set(kind, { count: 1, sentence });
    else found.count += 1;
  }

  sentences(): readonly string[] {
    return [...this.#found.values()].map(({ count, sentence }) => sentence(formatNumber(count)));
  }
}

/** Returns the labels of a cases file. */
export function labelsOfCases({ rows }: Pick<RowFile, 'rows'>): LabelledRows {
  const problems = new Problems();
  const read = rows.map((text, at): LabelledRow | null => {
    const row = at + 1;
    const fields = objectIn(text);
    const record = recordIn(fields?.get('state') ?? null);
    const listed = fields?.get('questions');
    if (record === null || !isJsonArray(listed)) {
      problems.add(
        'case',
        (count) =>
          `Cases without a record or without questions: ${count}, the first in row ${row}. They are left out.`,
      );
      return null;
    }
    const given = listed.map((body, index) => ({ id: `q${index + 1}`, body }));
    const labels = given.flatMap(({ id, body }) => caseLabel(id, body, row, problems));
    return labelledRow(row, record, labels, (label) =>
      sentBody(given.find(({ id }) => id === label.id)?.body),
    );
  });
  return whole(read, problems);
}

function caseLabel(id: string, body: JsonValue, row: number, problems: Problems): readonly Label[] {
  const question = questionOf(sentBody(body));
  const raw = isJsonObject(body) ? rawLabel(body.get('answer'), body.get('soft')) : null;
  const label = question === null || raw === null ? undefined : labelOf(question, raw);
  if (label !== undefined) return [{ id, ...label }];
  problems.add(
    'answer',
    (count) =>
      `Questions whose right answer is none of their options: ${count}, the first in row ${row}. They are left out.`,
  );
  return [];
}

/** Returns a question of a cases file as it is sent. */
function sentBody(body: JsonValue | undefined): JsonValue {
  if (!isJsonObject(body)) return null;
  return JsonObject.of(body.entries().filter(([name]) => !LABEL_FIELDS.includes(name)));
}

function rawLabel(answer: JsonValue | undefined, soft: JsonValue | undefined): RawLabel | null {
  if (typeof answer !== 'boolean' && typeof answer !== 'string' && typeof answer !== 'number') return null;
  if (isJsonArray(soft) && soft.every(isShare)) return { answer, soft: [...soft] };
  if (isJsonObject(soft)) {
    // An assignment to `__proto__` would make no field.
    const given = soft.entries().flatMap(([name, share]) => (isShare(share) ? [[name, share] as const] : []));
    return { answer, soft: Object.fromEntries(given) };
  }
  return { answer };
}

function isShare(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Returns the labels of a table, in these columns; `questions` are those of a request. */
export function labelsOfTable(
  { rows, columns: all }: Pick<RowFile, 'rows' | 'columns'>,
  questions: JsonObject<JsonValue>,
  columns: LabelColumns,
): LabelledRows {
  const problems = new Problems();
  const asked = questions.entries().flatMap(([id, body]): SentQuestion[] => {
    const question = questionOf(body);
    return question === null ? [] : [{ id, body, question }];
  });
  const of_labels = labelColumnsOf(columns);
  const kept = all.filter((name) => !of_labels.includes(name));
  const bodies = new Map(asked.map(({ id, body }) => [id, body]));
  const read = rows.map((text, at): LabelledRow | null => {
    const row = at + 1;
    const fields = objectIn(text);
    const record = recordIn(
      columns.record === null
        ? JsonObject.of(kept.map((name) => [name, fields?.get(name) ?? null]))
        : (fields?.get(columns.record) ?? null),
    );
    if (record === null) {
      problems.add(
        'record',
        (count) => `Rows without a record: ${count}, the first is row ${row}. They are left out.`,
      );
      return null;
    }
    const given = asked.filter(
      (one) => columns.question === null || fields?.get(columns.question) === one.id,
    );
    if (columns.question !== null && given.length === 0) {
      problems.add(
        'question',
        (count) =>
          `Rows whose question is not among the chosen ones: ${count}, the first is row ${row}. They are left out.`,
      );
      return null;
    }
    const labels = given.flatMap((one) => {
      const column = columns.question === null ? columns.answers[one.id] : columns.answer;
      return tableLabel(one, column == null ? null : (fields?.get(column) ?? null), row, problems);
    });
    return labelledRow(row, record, labels, ({ id }) => bodies.get(id) ?? null);
  });
  return whole(read, problems);
}

function labelColumnsOf({ question, answer, answers }: LabelColumns): readonly (string | null)[] {
  return question === null ? Object.values(answers) : [question, answer];
}

/** Returns the label in a cell; none for an empty one. */
function tableLabel(
  { id, question }: SentQuestion,
  cell: JsonValue,
  row: number,
  problems: Problems,
): readonly Label[] {
  const text = typeof cell === 'string' ? cell.trim() : cell === null ? '' : writeJson(cell);
  if (text === '') return [];
  const answer = answerIn(question, text);
  const label = answer === null ? undefined : labelOf(question, { answer });
  if (label !== undefined) return [{ id, ...label }];
  problems.add(
    `answer ${id}`,
    (count) =>
      `Right answers to "${id}" that are none of its options: ${count}, the first is "${text.slice(0, 40)}" in row ${row}. They are left out.`,
  );
  return [];
}

const YES = ['true', 'yes', 'y', '1'];
const NO = ['false', 'no', 'n', '0'];

/** Returns the answer that a cell means; null for none. */
function answerIn(question: Question, text: string): RawLabel['answer'] | null {
  const lower = text.toLowerCase();
  switch (question.type) {
    case 'noul':
      return YES.includes(lower) ? true : NO.includes(lower) ? false : null;
    case 'choice':
      return text;
    case 'score': {
      const level = question.levels.indexOf(text);
      return level >= 0 ? level : /^\d+$/.test(text) ? Number(text) : null;
    }
  }
}

function questionOf(body: JsonValue): Question | null {
  const read = parseQuestion(body);
  return read === null || read instanceof InvalidCriteria ? null : read.question;
}

function labelledRow(
  row: number,
  record: JsonValue,
  labels: readonly Label[],
  bodyOf: (label: Label) => JsonValue,
): LabelledRow {
  const questions = JsonObject.of(labels.map((label) => [label.id, bodyOf(label)]));
  return { row, record, questions, labels };
}

/** Returns the rows with labels; those that are asked alike share their questions. */
function whole(read: readonly (LabelledRow | null)[], problems: Problems): LabelledRows {
  const known = new Map<string, JsonValue>();
  const records = read.filter((one) => one !== null);
  const rows = records
    .filter(({ labels }) => labels.length > 0)
    .map((one): LabelledRow => {
      const text = writeJson(one.questions);
      const questions = known.get(text) ?? one.questions;
      known.set(text, questions);
      return { ...one, questions };
    });
  const unlabelled = records.length - rows.length;
  const sentences = [
    ...problems.sentences(),
    ...(unlabelled === 0
      ? []
      : [`Rows without a right answer: ${formatNumber(unlabelled)}. They are not asked.`]),
  ];
  return { rows, problems: sentences };
}
