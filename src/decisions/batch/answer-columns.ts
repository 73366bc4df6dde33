import { isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import type { QuestionType } from '../../questions/question.ts';

/** A cell of a row. */
export type Cell = string | number;

/** A question whose answers are columns. */
export interface ColumnQuestion {
  readonly id: string;
  readonly type: QuestionType;
  /** Null for none. */
  readonly threshold: number | null;
  /** The names of a choice's options, or the numbers of a score's levels. */
  readonly classes: readonly string[];
}

/** The path of a value in an answer, with its heading. */
interface Column {
  readonly heading: string;
  readonly path: readonly string[];
}

const BEFORE: readonly Column[] = [{ heading: 'id', path: ['id'] }];
const AFTER: readonly Column[] = [
  { heading: 'model', path: ['model'] },
  { heading: 'mode', path: ['mode'] },
  { heading: 'input_tokens', path: ['usage', 'input_tokens'] },
  { heading: 'cost_usd', path: ['usage', 'cost_usd'] },
  { heading: 'request_id', path: ['request_id'] },
];

/**
 * The columns of answers to the same questions. The answer to a question is under its id. Beside it are the probability
 * of each option or level with the confidence, or the decision by the threshold.
 */
export class AnswerColumns {
  readonly #columns: readonly Column[];

  constructor(questions: readonly ColumnQuestion[]) {
    this.#columns = [...BEFORE, ...questions.flatMap(columnsOf), ...AFTER];
  }

  get headings(): readonly string[] {
    return this.#columns.map(({ heading }) => heading);
  }

  /** Returns the row of an answer; a cell is empty where the answer has no such value. */
  row(answer: JsonObject<JsonValue>): readonly Cell[] {
    return this.#columns.map(({ path }) => cellOf(valueAt(answer, path)));
  }
}

function columnsOf({ id, type, threshold, classes }: ColumnQuestion): readonly Column[] {
  const answer = ['answers', id];
  const main = { heading: id, path: [...answer, type] };
  const part = (name: string) => ({ heading: `${id}.${name}`, path: [...answer, name] });
  switch (type) {
    case 'noul':
      return threshold === null ? [main] : [main, part('decision')];
    case 'choice':
    case 'score':
      return [
        main,
        part('confidence'),
        ...classes.map((name) => ({
          heading: `${id}.${name}`,
          path: [...answer, 'probabilities', name],
        })),
      ];
  }
}

function valueAt(value: JsonValue, [name, ...rest]: readonly string[]): JsonValue | undefined {
  if (name === undefined) return value;
  const member = isJsonObject(value) ? value.get(name) : undefined;
  return member === undefined ? undefined : valueAt(member, rest);
}

function cellOf(value: JsonValue | undefined): Cell {
  if (typeof value === 'number' || typeof value === 'string') return value;
  return typeof value === 'boolean' ? String(value) : '';
}
