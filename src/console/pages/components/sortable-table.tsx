import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatNumber } from '../format.ts';
import { Button } from './button.tsx';
import { Select } from './field.tsx';
import { type Column, focusRow, Table, type TableProps } from './table.tsx';

const PAGE_ROWS = 50;

interface ChosenOrder {
  readonly title: string;
  readonly is_descending: boolean;
}

/** A column that its title sorts by, where it has something to compare. */
export interface SortableColumn<Row> extends Column<Row> {
  readonly sortBy?: (row: Row) => string | number;
}

export interface SortableTableProps<Row> extends Omit<TableProps<Row>, 'columns' | 'order' | 'loadMore'> {
  readonly columns: readonly SortableColumn<Row>[];
  /** The text that the rows were searched for; another one begins with the first page. */
  readonly search?: string;
}

/** A table whose rows are all there: sorted by its titles, and shown in pages of 50. */
export function SortableTable<Row>({ columns, rows, search, ...table }: SortableTableProps<Row>) {
  const [order, setOrder] = useState<ChosenOrder>();
  const [wanted_page, setPage] = useState(0);
  useLayoutEffect(() => setPage(0), [search]);
  const pager = useRef<HTMLElement>(null);
  /** True while the pager was pressed for the page that is drawn next. */
  const is_turning = useRef(false);
  const sortBy = columns.find(({ title }) => title === order?.title)?.sortBy;
  const sorted = sortBy === undefined ? rows : rows?.toSorted((a, b) => compared(sortBy(a), sortBy(b)));
  const ordered = order?.is_descending === true ? sorted?.toReversed() : sorted;
  const count = rows?.length ?? 0;
  const page = Math.min(wanted_page, Math.max(0, Math.ceil(count / PAGE_ROWS) - 1));
  const first = page * PAGE_ROWS;
  useLayoutEffect(() => {
    if (!is_turning.current) return;
    is_turning.current = false;
    // The new rows begin above the pager, whose button may have nothing more to do.
    const row = pager.current?.previousElementSibling?.querySelector<HTMLElement>('tbody tr');
    if (row != null) focusRow(row);
  }, [page]);
  const turnTo = (turned: number) => {
    is_turning.current = true;
    setPage(turned);
  };
  const titles = columns.filter((column) => column.sortBy !== undefined).map(({ title }) => title);
  const sort = (chosen: ChosenOrder | undefined) => {
    setOrder(chosen);
    setPage(0);
  };
  return (
    <>
      {count > 1 && <OrderChoice titles={titles} order={order} onChange={sort} />}
      <Table
        {...table}
        columns={columns}
        rows={ordered?.slice(first, first + PAGE_ROWS)}
        order={{
          title: order?.title ?? null,
          is_descending: order?.is_descending ?? false,
          titles,
          onSort: (title) => sort({ title, is_descending: order?.title === title && !order.is_descending }),
        }}
      />
      {count > PAGE_ROWS && (
        <nav ref={pager} class="pager" aria-label={`Pages of ${table.caption}`}>
          <span class="muted number">
            {formatNumber(first + 1)}–{formatNumber(Math.min(first + PAGE_ROWS, count))} of{' '}
            {formatNumber(count)}
          </span>
          <Button size="small" is_disabled={page === 0} onClick={() => turnTo(page - 1)}>
            Previous
          </Button>
          <Button size="small" is_disabled={first + PAGE_ROWS >= count} onClick={() => turnTo(page + 1)}>
            Next
          </Button>
        </nav>
      )}
    </>
  );
}

/** The order of the rows on a phone, where the titles that sort are hidden. */
function OrderChoice({
  titles,
  order,
  onChange,
}: {
  readonly titles: readonly string[];
  readonly order: ChosenOrder | undefined;
  readonly onChange: (order: ChosenOrder | undefined) => void;
}) {
  const nameOf = ({ title, is_descending }: ChosenOrder) => `${title}${is_descending ? ', reversed' : ''}`;
  const orders = titles.flatMap((title) => [
    { title, is_descending: false },
    { title, is_descending: true },
  ]);
  return (
    <div class="list-search sort-choice">
      <Select
        label="Sort by"
        name="sort"
        options={['', ...orders.map(nameOf)].map((value) => ({ value, label: value || 'As they came' }))}
        value={order === undefined ? '' : nameOf(order)}
        onChange={(chosen) => onChange(orders.find((one) => nameOf(one) === chosen))}
      />
    </div>
  );
}

function compared(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true, sensitivity: 'base' });
}
