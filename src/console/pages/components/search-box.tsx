import { useEffect, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';

/** A search box. Its text is sent on a button or Enter, and not while it is typed. */
export function SearchBox({
  searched,
  submit = 'Search',
  shows_all = false,
  onSearch,
  ...field
}: {
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
  readonly autocomplete?: 'off';
  readonly length_max?: number;
  /** The text of the shown search; null while everything is shown. */
  readonly searched: string | null;
  readonly submit?: string;
  /** True for a button that ends the search. */
  readonly shows_all?: boolean;
  /** Called with the text; null to show everything again. */
  readonly onSearch: (text: string | null) => void;
}) {
  const [text, setText] = useState(searched ?? '');
  useEffect(() => setText(searched ?? ''), [searched]);
  return (
    <search>
      <form
        class="search-box"
        onSubmit={(event) => {
          event.preventDefault();
          onSearch(text.trim() === '' ? null : text.trim());
        }}
      >
        <TextField {...field} hides_label type="search" value={text} onInput={setText} />
        <Button type="submit">{submit}</Button>
        {shows_all && (searched ?? '') !== '' && (
          <Button kind="quiet" onClick={() => onSearch(null)}>
            Show all
          </Button>
        )}
      </form>
    </search>
  );
}
