import { type ConfusionCell, confusionCells } from '../../../eval/confusion-matrix.ts';
import { EmptyState } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { formatNumber } from '../format.ts';
import type { JudgedRow } from './evaluated.ts';

/** A right answer and the one that was given, by their classes. */
export type Cell = Pick<ConfusionCell, 'answer' | 'predicted'>;

/** Of more classes a matrix cannot be read: then the largest cells are listed. */
const MATRIX_CLASSES_MAX = 16;
const LISTED_CELLS = 30;

interface MatrixProps {
  readonly judged: readonly JudgedRow[];
  readonly class_names: readonly string[];
  /** The cell whose rows are shown. */
  readonly chosen: Cell | null;
  readonly onChoose: (cell: Cell | null) => void;
}

/** How often each right answer got each answer. A cell is a button, which shows its rows. */
export function ConfusionMatrix(props: MatrixProps) {
  const cells = confusionCells(props.judged);
  return (
    <section class="panel padded playground-part" aria-label="Confusion matrix">
      <h3>Confusion matrix</h3>
      <p class="help">Right answers in rows, given answers in columns. A number shows its rows below.</p>
      {props.class_names.length > MATRIX_CLASSES_MAX ? (
        <CellList {...props} cells={cells} />
      ) : (
        <Matrix {...props} cells={cells} />
      )}
    </section>
  );
}

interface CellsProps extends MatrixProps {
  readonly cells: readonly ConfusionCell[];
}

function Matrix({ class_names, cells, ...choice }: CellsProps) {
  const of_row = class_names.map((_, answer) =>
    cells.filter((cell) => cell.answer === answer).reduce((sum, { count }) => sum + count, 0),
  );
  return (
    <div
      class="confusion-frame"
      // A scrolling region must be focusable by the keyboard.
      {...{ role: 'region', 'aria-label': 'Counts', tabIndex: 0 }}
    >
      <table class="confusion">
        <caption class="visually-hidden">Right answers in rows, given answers in columns</caption>
        <thead>
          <tr>
            <td />
            {class_names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {class_names.map((name, answer) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {class_names.map((given, predicted) => {
                const count =
                  cells.find((cell) => cell.answer === answer && cell.predicted === predicted)?.count ?? 0;
                return (
                  <td key={given}>
                    <CellButton
                      cell={{ answer, predicted, count }}
                      share={count / Math.max(1, of_row[answer] ?? 0)}
                      label={`${name} answered as ${given}: ${formatNumber(count)}`}
                      {...choice}
                    />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The largest cells off the diagonal. */
function CellList({ class_names, cells, ...choice }: CellsProps) {
  const wrong = cells.filter(({ answer, predicted }) => answer !== predicted).slice(0, LISTED_CELLS);
  const nameOf = (at: number) => class_names[at] ?? '';
  return (
    <Table
      caption="Most frequent confusions"
      columns={[
        { title: 'Right answer', cell: ({ answer }: ConfusionCell) => nameOf(answer), is_name: true },
        { title: 'Given', cell: ({ predicted }) => nameOf(predicted) },
        {
          title: 'Rows',
          is_at_end: true,
          cell: (cell) => (
            <CellButton
              cell={cell}
              share={0}
              label={`${nameOf(cell.answer)} answered as ${nameOf(cell.predicted)}: ${formatNumber(cell.count)}`}
              {...choice}
            />
          ),
        },
      ]}
      rows={wrong}
      keyOf={({ answer, predicted }) => `${answer} ${predicted}`}
      empty={<EmptyState title="Nothing was confused" />}
    />
  );
}

function CellButton({
  cell: { answer, predicted, count },
  share,
  label,
  chosen,
  onChoose,
}: Pick<MatrixProps, 'chosen' | 'onChoose'> & {
  readonly cell: ConfusionCell;
  /** The part of its row, which is its shade. */
  readonly share: number;
  readonly label: string;
}) {
  const is_chosen = chosen?.answer === answer && chosen.predicted === predicted;
  return (
    <button
      type="button"
      class={answer === predicted ? 'confusion-cell is-right' : 'confusion-cell'}
      style={{ '--share': `${Math.round(40 * share)}%` }}
      aria-label={label}
      aria-pressed={is_chosen}
      disabled={count === 0}
      onClick={() => onChoose(is_chosen ? null : { answer, predicted })}
    >
      {formatNumber(count)}
    </button>
  );
}
