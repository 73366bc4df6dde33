import { writeJson } from '../../../json/write-json.ts';
import { Button } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { EXAMPLES } from './examples.ts';
import { LinkButton } from './link-button.tsx';
import { SavedRequests } from './saved-requests.tsx';
import type { KeptWorkState } from './use-kept-work.ts';
import type { Opening } from './use-opening.ts';
import type { WrittenRequest } from './use-request.ts';

const VIEWS = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

/** The examples and saved requests that can be opened, a link to the request, and how it is edited. */
export function RequestBar({
  organization_id,
  request: { body, json, show },
  kept,
  opening: { linked, openExample, openSaved },
}: {
  readonly organization_id: string;
  readonly request: WrittenRequest;
  readonly kept: KeptWorkState;
  readonly opening: Opening;
}) {
  return (
    <>
      <div class="playground-setup">
        <div class="playground-examples">
          <span class="muted">Examples</span>
          {EXAMPLES.map((one) => (
            <Button key={one.name} size="small" onClick={() => openExample(one)}>
              {one.name}
            </Button>
          ))}
        </div>
        <div class="row">
          <SavedRequests
            requests={kept.requests}
            onSave={body === null ? null : (name) => kept.save(name, writeJson(body))}
            onOpen={openSaved}
            onRemove={kept.remove}
          />
          <LinkButton body={body} organization_id={organization_id} />
          <SegmentedControl
            label="Edit as"
            options={VIEWS}
            value={json === null ? 'form' : 'json'}
            onChange={show}
          />
        </div>
      </div>
      {linked === 'unreadable' && (
        <Notice tone="warning" title="This link has no request that can be read.">
          It may have been cut off. Ask for it again.
        </Notice>
      )}
    </>
  );
}
