import { Button } from '../components/button.tsx';
import { CopyText } from '../components/copy-button.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { Time } from '../components/time.tsx';
import { formatExact } from '../format.ts';
import { chosenZone } from '../time-zone.ts';
import { useLoaded } from '../use-loaded.ts';
import { loadRequests, REQUEST_FIELDS } from './requests.tsx';
import type { UsageQuery } from './view.ts';

/** The stored data of one request, or a message that there is none of that id. */
export function FoundRequest({
  organization_id,
  request_id,
  asked,
  onClose,
}: {
  readonly organization_id: string;
  readonly request_id: string;
  readonly asked: UsageQuery;
  readonly onClose: () => void;
}) {
  const found = useLoaded(() => loadRequests(organization_id, asked, null), [asked]);
  return (
    <section class="panel padded stack" aria-label="The request" aria-live="polite">
      <LoadedView loaded={found}>
        {({ items: [request] }) =>
          request === undefined ? (
            <EmptyState title="Request not found">
              Your organization has no request with the id <code>{request_id}</code>. Requests that were
              refused before they reached the model are not kept, and old ones only as daily totals.
            </EmptyState>
          ) : (
            <>
              <CopyText text={request.request_id} label="Copy the request id" />
              <dl class="facts">
                <div>
                  <dt>Time</dt>
                  <dd>
                    {formatExact(request.time_ms, chosenZone())} (<Time time_ms={request.time_ms} />)
                  </dd>
                </div>
                {REQUEST_FIELDS.map(({ title, value }) => (
                  <div key={title}>
                    <dt>{title}</dt>
                    <dd>{value(request)}</dd>
                  </div>
                ))}
              </dl>
            </>
          )
        }
      </LoadedView>
      <div class="row">
        <Button onClick={onClose}>Show all requests</Button>
      </div>
    </section>
  );
}
