import { confidenceOf } from '../../../eval/predictions.ts';
import type { JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { Button } from '../components/button.tsx';
import { SortableTable } from '../components/sortable-table.tsx';
import { EmptyState } from '../components/states.tsx';
import { formatNumber, formatPercent } from '../format.ts';
import type { Cell } from './confusion-matrix.tsx';
import type { EvaluatedQuestion, JudgedRow } from './evaluated.ts';
import type { LabelledRow } from './labels.ts';

/** So much of a record is shown before it is opened. */
const RECORD_LENGTH = 160;

/** The rows whose answer is wrong, or those of a cell of the matrix, to be read. */
export function JudgedRows({
  evaluated: { judged, class_names },
  rows,
  cell,
  onClear,
}: {
  readonly evaluated: EvaluatedQuestion;
  readonly rows: readonly LabelledRow[];
  readonly cell: Cell | null;
  readonly onClear: () => void;
}) {
  const shown = judged.filter(({ answer, predicted }) =>
    cell === null ? answer !== predicted : answer === cell.answer && predicted === cell.predicted,
  );
  const nameOf = (at: number) => class_names[at] ?? '';
  const title =
    cell === null ? 'Wrong answers' : `${nameOf(cell.answer)} answered as ${nameOf(cell.predicted)}`;
  const records = new Map(rows.map(({ row, record }) => [row, record]));
  return (
    <section class="playground-part" aria-label={title}>
      <header class="playground-part-head">
        <h3 aria-live="polite">
          {title} ({formatNumber(shown.length)})
        </h3>
        {cell !== null && (
          <Button size="small" onClick={onClear}>
            All wrong answers
          </Button>
        )}
      </header>
      <SortableTable
        key={title}
        caption={title}
        columns={[
          {
            title: 'Row',
            cell: ({ row }: JudgedRow) => formatNumber(row),
            sortBy: ({ row }) => row,
            is_name: true,
          },
          {
            title: 'Record',
            cell: ({ row }) => <Record record={records.get(row) ?? ''} />,
            has_own_line: true,
          },
          { title: 'Right', cell: ({ answer }) => nameOf(answer), sortBy: ({ answer }) => nameOf(answer) },
          {
            title: 'Given',
            cell: ({ predicted }) => nameOf(predicted),
            sortBy: ({ predicted }) => nameOf(predicted),
          },
          {
            title: 'Probability',
            cell: (one) => formatPercent(confidenceOf(one)),
            sortBy: confidenceOf,
            is_at_end: true,
          },
        ]}
        rows={shown}
        keyOf={({ row }) => String(row)}
        empty={<EmptyState title="Every answer is right" />}
      />
    </section>
  );
}

function Record({ record }: { readonly record: JsonValue }) {
  const text = typeof record === 'string' ? record : writeJson(record);
  if (text.length <= RECORD_LENGTH) return <span class="evaluate-record">{text}</span>;
  return (
    <details class="evaluate-record">
      <summary>{text.slice(0, RECORD_LENGTH)}…</summary>
      <p>{text}</p>
    </details>
  );
}
