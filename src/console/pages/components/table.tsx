import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { Skeleton } from './skeleton.tsx';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** True for numbers and actions, which are aligned to the end of their column. */
  readonly is_at_end?: boolean;
  /** True for the cell that names the row: the head of its card on a phone. */
  readonly is_name?: boolean;
  /** True for a drawing, such as a meter: it has room beside the others, and a line of its own on a phone. */
  readonly has_own_line?: boolean;
  /** True for a column that a phone omits, because the row's own view has it. */
  readonly is_secondary?: boolean;
  /** True for actions, whose title is hidden visually. */
  readonly hides_title?: boolean;
}

/** The column of a row's actions, but for its cells. */
export const ACTIONS = { title: 'Actions', hides_title: true, is_at_end: true } as const;

/** By which column the rows are sorted, and what sorts them by another. */
export interface TableOrder {
  /** Null for the order in which they came. */
  readonly title: string | null;
  readonly is_descending: boolean;
  /** The columns that can be sorted by. */
  readonly titles: readonly string[];
  readonly onSort: (title: string) => void;
}

export interface TableProps<Row> {
  /** The content of the table, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined until the first load. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** The content in place of no rows: an `EmptyState` with advice. Absent where there always is a row. */
  readonly empty?: ComponentChildren;
  readonly is_loading?: boolean;
  /** True for more columns than fit: the table scrolls within its frame, and its cells keep to one line. */
  readonly is_wide?: boolean;
  /** True for many rows of short texts: a phone shows as many of them in a line as it has room for. */
  readonly is_dense?: boolean;
  readonly order?: TableOrder;
  /** Loads the next rows; null when all are there. */
  readonly loadMore?: (() => Promise<void>) | null;
}

/** Rows with headers; on a phone each row is a card. */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
  is_loading = false,
  is_wide = false,
  is_dense = false,
  order,
  loadMore,
}: TableProps<Row>) {
  const { frame, noteFirstNew } = useFocusOnNewRows(rows?.length);
  if (rows === undefined) return <Skeleton lines={5} label={`Loading ${caption}`} />;
  if (rows.length === 0) return <div class="panel">{empty}</div>;
  return (
    <div
      ref={frame}
      class={`panel table-frame${is_wide ? ' is-wide' : ''}${is_dense ? ' is-dense' : ''}`}
      aria-busy={is_loading}
      // A scrolling region must be focusable by the keyboard.
      {...(is_wide ? { role: 'region', 'aria-label': caption, tabIndex: 0 } : {})}
    >
      <table class="table">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, is_at_end, hides_title }) => (
              <th
                key={title}
                scope="col"
                class={is_at_end ? 'at-end' : undefined}
                aria-sort={order?.title === title ? sortOf(order) : undefined}
                // On a phone its button is hidden, which would take the column's name along.
                aria-label={order?.titles.includes(title) === true ? title : undefined}
              >
                {order?.titles.includes(title) === true ? (
                  <button type="button" class="sort-button" onClick={() => order.onSort(title)}>
                    {title}
                    <span aria-hidden="true">
                      {order.title !== title ? '' : order.is_descending ? ' ↓' : ' ↑'}
                    </span>
                  </button>
                ) : hides_title ? (
                  <span class="visually-hidden">{title}</span>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, is_at_end, is_name, has_own_line, is_secondary, hides_title }) => (
                <td
                  key={title}
                  data-title={hides_title || is_name ? undefined : title}
                  class={classOf({ is_at_end, is_name, has_own_line, is_secondary })}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {loadMore != null && (
        <div class="table-more">
          <Button
            is_busy={is_loading}
            onClick={() => {
              noteFirstNew(rows.length);
              return loadMore();
            }}
          >
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

/** Moves the focus from "Show more", which goes with the last page, to the first row of that page. */
function useFocusOnNewRows(rows: number | undefined) {
  const frame = useRef<HTMLDivElement>(null);
  const first_new = useRef<number | undefined>(undefined);
  // Before the focus is kept elsewhere, because the button is gone.
  useLayoutEffect(() => {
    const noted = first_new.current;
    first_new.current = undefined;
    if (noted === undefined || document.activeElement !== document.body) return;
    const row = frame.current?.querySelectorAll('tr')[noted];
    if (row !== undefined) focusRow(row);
  }, [rows]);
  return {
    frame,
    noteFirstNew: (row: number) => {
      // The first one is that of the headers.
      first_new.current = row + 1;
    },
  };
}

/** Moves the focus to a row, which then is in sight. */
export function focusRow(row: HTMLElement): void {
  row.tabIndex = -1;
  row.focus();
}

function sortOf({ is_descending }: TableOrder): 'ascending' | 'descending' {
  return is_descending ? 'descending' : 'ascending';
}

function classOf(
  column: {
    readonly [name in 'is_at_end' | 'is_name' | 'has_own_line' | 'is_secondary']: boolean | undefined;
  },
) {
  const { is_at_end, is_name, has_own_line, is_secondary } = column;
  const names = [
    is_at_end && 'at-end',
    is_name && 'name',
    has_own_line && 'own-line',
    is_secondary && 'secondary',
  ].filter(Boolean);
  return names.length === 0 ? undefined : names.join(' ');
}
