import { api, call } from '../client.ts';
import { Section } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { Time } from '../components/time.tsx';
import { formatCount } from '../format.ts';
import { useLoaded } from '../use-loaded.ts';

interface RefusedRequestsProps {
  readonly organization_id: string;
  /** Counts up when it is to be asked again. */
  readonly refreshes?: number;
  /** True to show nothing where no request was refused. */
  readonly hides_none?: boolean;
}

/** The requests that got an error in the last 24 hours, by code, with what each code means. */
export function RefusedRequests({
  organization_id,
  refreshes = 0,
  hides_none = false,
}: RefusedRequestsProps) {
  const refused = useLoaded(
    () => call(api.organizations({ organization_id }).usage.refusals.get()),
    [organization_id, refreshes],
    { keep_stale: true },
  );
  const has_none = refused.error === undefined && (refused.data?.items ?? []).length === 0;
  if (hides_none && has_none) return null;
  return (
    <Section
      title="Refused requests"
      description="In the last 24 hours, or since the service started. They cost nothing, and most are not in the charts."
      actions={<a href="/docs/errors">All error codes</a>}
    >
      <LoadedView loaded={refused} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">No request was refused.</p>
          ) : (
            <ul class="panel refusals">
              {items.map(({ code, status, message, requests, last_at_ms }) => (
                <li key={code}>
                  <span>
                    <code>{code}</code> <span class="muted">{status}</span>
                  </span>
                  <strong class="number">{formatCount(requests, 'request')}</strong>
                  <p>{message}</p>
                  <span class="muted">
                    last <Time time_ms={last_at_ms} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </LoadedView>
    </Section>
  );
}
