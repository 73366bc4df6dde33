import { TextField } from './field.tsx';

/** Fewer are seen at a glance. */
const SEARCHED_MIN = 5;

interface ListSearchProps {
  /** The name of the field: "Search keys". */
  readonly label: string;
  readonly placeholder: string;
  /** The number of rows without the search. */
  readonly count: number;
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** The field that searches a list whose rows are all there; nothing for a list of few. */
export function ListSearch({ label, placeholder, count, value, onInput }: ListSearchProps) {
  if (count < SEARCHED_MIN) return null;
  return (
    <div class="list-search">
      <TextField
        label={label}
        hides_label
        name="search"
        type="search"
        placeholder={placeholder}
        autocomplete="off"
        value={value}
        onInput={onInput}
      />
    </div>
  );
}

/** True if the texts of a row have every word of the search. */
export function hasWords(texts: readonly string[], search: string): boolean {
  const shown = texts.join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => shown.includes(word));
}
