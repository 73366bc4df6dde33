import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { Notice } from '../components/notice.tsx';
import { Time } from '../components/time.tsx';
import { keeps_work, type SavedRequest } from './kept-work.ts';

/** The requests that have a name in this browser: opens one, removes one, or gives the shown one a name. */
export function SavedRequests({
  requests,
  onSave,
  onOpen,
  onRemove,
}: {
  readonly requests: readonly SavedRequest[];
  /** Null while there is no request to save. */
  readonly onSave: ((name: string) => Promise<unknown>) | null;
  readonly onOpen: (request: SavedRequest) => void;
  readonly onRemove: (request: SavedRequest) => void;
}) {
  const [is_open, setOpen] = useState(false);
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)}>
        Saved requests{requests.length > 0 && ` (${requests.length})`}
      </Button>
      <Dialog title="Saved requests" is_open={is_open} onClose={() => setOpen(false)}>
        {keeps_work.value ? (
          <Form
            submit="Save this request"
            is_disabled={onSave === null}
            onSubmit={async (values) => {
              await onSave?.(values.text('request_name'));
            }}
            onDone={() => setOpen(false)}
          >
            <TextField
              label="Name"
              name="request_name"
              length_max={100}
              help="It stays in this browser. A request of the same name is replaced."
              autocomplete="off"
              is_required
            />
          </Form>
        ) : (
          <Notice title="This browser keeps nothing">
            Switch on "Keep my work in this browser" to save requests.
          </Notice>
        )}
        {requests.length > 0 && (
          <ul class="saved-list">
            {requests.map((request) => (
              <li key={request.name}>
                <button
                  type="button"
                  class="saved-name"
                  onClick={() => {
                    setOpen(false);
                    onOpen(request);
                  }}
                >
                  <span>{request.name}</span>
                  <span class="muted">
                    <Time time_ms={request.at_ms} />
                  </span>
                </button>
                <Button
                  kind="quiet"
                  size="small"
                  label={`Remove ${request.name}`}
                  onClick={() => onRemove(request)}
                >
                  ×
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Dialog>
    </>
  );
}
