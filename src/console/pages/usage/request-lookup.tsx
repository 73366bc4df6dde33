import { useEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';

/** A field that finds one request by its id. */
export function RequestLookup({
  request_id,
  onLookUp,
}: {
  readonly request_id: string | null;
  /** Called with the id; null to show all requests again. */
  readonly onLookUp: (request_id: string | null) => void;
}) {
  const [entered, setEntered] = useState(request_id ?? '');
  useEffect(() => setEntered(request_id ?? ''), [request_id]);
  return (
    <search>
      <form
        class="lookup"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = entered.trim();
          onLookUp(wanted === '' ? null : wanted);
        }}
      >
        <TextField
          label="Request id"
          hides_label
          name="request_id"
          type="search"
          placeholder="Find a request id"
          autocomplete="off"
          length_max={64}
          value={entered}
          onInput={setEntered}
        />
        <Button type="submit">Find</Button>
      </form>
    </search>
  );
}
