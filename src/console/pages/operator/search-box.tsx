import { useEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { query, setQuery } from '../router.ts';

/** A search box whose text is in the address, under that name. */
export function SearchBox({
  name,
  label,
  placeholder,
}: {
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
}) {
  const searched = query.value.get(name) ?? '';
  const [text, setText] = useState(searched);
  useEffect(() => setText(searched), [searched]);
  return (
    <search>
      <form
        class="search-box"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ [name]: text.trim() === '' ? null : text.trim() });
        }}
      >
        <TextField
          label={label}
          hides_label
          name={name}
          type="search"
          value={text}
          placeholder={placeholder}
          onInput={setText}
        />
        <Button type="submit">Search</Button>
        {searched !== '' && (
          <Button kind="quiet" onClick={() => setQuery({ [name]: null })}>
            Show all
          </Button>
        )}
      </form>
    </search>
  );
}
