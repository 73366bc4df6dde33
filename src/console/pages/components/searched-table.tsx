import { useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { SortableTable, type SortableTableProps } from './sortable-table.tsx';
import { EmptyState } from './states.tsx';

/** Fewer are seen at a glance. */
const SEARCHED_MIN = 5;

interface SearchedTableProps<Row> extends Omit<SortableTableProps<Row>, 'search'> {
  /** The rows in one word, such as "keys". */
  readonly plural: string;
  readonly placeholder: string;
  /** The texts of a row that a search goes through. */
  readonly textsOf: (row: Row) => readonly string[];
}

/** A sortable table with a field that searches its rows, unless they are few. */
export function SearchedTable<Row>({
  rows,
  plural,
  placeholder,
  textsOf,
  empty,
  ...table
}: SearchedTableProps<Row>) {
  const [search, setSearch] = useState('');
  return (
    <>
      {((rows?.length ?? 0) >= SEARCHED_MIN || search !== '') && (
        <div class="list-search">
          <TextField
            label={`Search ${plural}`}
            hides_label
            name="search"
            type="search"
            placeholder={placeholder}
            autocomplete="off"
            value={search}
            onInput={setSearch}
          />
        </div>
      )}
      <SortableTable
        {...table}
        search={search}
        rows={rows?.filter((row) => hasWords(textsOf(row), search))}
        empty={
          rows?.length === 0 ? (
            empty
          ) : (
            <EmptyState
              title={`No matching ${plural}`}
              actions={<Button onClick={() => setSearch('')}>Show all {plural}</Button>}
            />
          )
        }
      />
    </>
  );
}

/** True if the texts of a row have every word of the search. */
function hasWords(texts: readonly string[], search: string): boolean {
  const shown = texts.join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => shown.includes(word));
}
