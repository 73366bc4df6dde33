import { isJsonObject, type JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { Badge } from '../components/badge.tsx';
import { type Column, Table } from '../components/table.tsx';
import { formatNumber, formatPercent } from '../format.ts';
import { objectIn } from '../object-in.ts';
import type { AskedQuestion } from '../playground/asked.ts';
import { THRESHOLD_DEFAULT } from '../playground/question-fields.tsx';
import { recordOf } from '../rows/row-file.ts';
import { type AnsweredRows, messageOf } from './download.ts';

/** More rows say nothing more: all of them are in the download. */
const ROWS_SHOWN = 20;
/** How much of a record a row shows. */
const RECORD_LENGTH = 160;

/** The first rows, as they are sent, with their answers; after them the first rows that have an error. */
export function RowsTable({ rows, column }: { readonly rows: AnsweredRows; readonly column: string | null }) {
  const { file, questions, answers } = rows;
  const record = (row: number) => {
    const value = recordOf(file.rows[row - 1] ?? '', column);
    if (value === null) return <Badge tone="warning">No record</Badge>;
    const text = typeof value === 'string' ? value : writeJson(value);
    return <span class="batch-record">{text.slice(0, RECORD_LENGTH)}</span>;
  };
  const first_columns: readonly Column<number>[] = [
    { title: 'Row', cell: (row) => formatNumber(row), is_name: true },
    { title: 'Record', cell: record, has_own_line: true },
  ];
  const answer_columns = questions.map((question): Column<number> => {
    return { title: question.id, cell: (row) => <Answer question={question} text={answers.get(row)} /> };
  });
  const error = (row: number) => messageOf(objectIn(answers.get(row) ?? '')?.get('error'));
  const shown = Array.from({ length: Math.min(ROWS_SHOWN, file.rows.length) }, (_, at) => at + 1);
  const failed = [...answers.keys()]
    .toSorted((a, b) => a - b)
    .filter((row) => error(row) !== '')
    .slice(0, ROWS_SHOWN);
  return (
    <div class="stack batch-rows">
      <Table
        caption="The first rows"
        columns={[...first_columns, ...answer_columns]}
        rows={shown}
        keyOf={String}
        is_wide
      />
      {failed.length > 0 && (
        <Table
          caption="Rows with errors"
          columns={[...first_columns, { title: 'Error', cell: error, has_own_line: true }]}
          rows={failed}
          keyOf={String}
          is_wide
        />
      )}
    </div>
  );
}

function Answer({ question, text }: { readonly question: AskedQuestion; readonly text: string | undefined }) {
  if (text === undefined) return <span class="muted">–</span>;
  const line = objectIn(text);
  if (line?.get('error') !== undefined) return <Badge tone="danger">Error</Badge>;
  const answers = line?.get('answers');
  const answer = isJsonObject(answers) ? answers.get(question.id) : undefined;
  if (!isJsonObject(answer)) return <span class="muted">–</span>;
  const [main, share] = answerText(question, answer);
  return (
    <span>
      {main} <span class="muted number">{share}</span>
    </span>
  );
}

/** Returns an answer in a few characters, and its own probability; of a score, that of the likeliest level. */
function answerText(
  { type, threshold }: AskedQuestion,
  answer: JsonObject<JsonValue>,
): readonly [main: string, share: string] {
  const value = answer.get(type) ?? '';
  switch (type) {
    case 'noul': {
      const yes = Number(value);
      return yes >= (threshold ?? THRESHOLD_DEFAULT)
        ? ['Yes', formatPercent(yes)]
        : ['No', formatPercent(1 - yes)];
    }
    case 'choice': {
      const probabilities = answer.get('probabilities');
      const chosen = isJsonObject(probabilities) ? probabilities.get(String(value)) : undefined;
      return [String(value), percent(chosen)];
    }
    case 'score':
      return [formatNumber(Number(value), 2), percent(answer.get('confidence'))];
  }
}

function percent(value: JsonValue | undefined): string {
  return typeof value === 'number' ? formatPercent(value) : '';
}
