import { useMemo, useState } from 'preact/hooks';
import { Button, ButtonLink } from '../components/button.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchBox } from '../components/search-box.tsx';
import type { PageProps } from '../page.ts';
import { query, setQuery } from '../router.ts';
import { FoundRequest } from './found-request.tsx';
import { UsageOverview } from './usage-overview.tsx';
import { addressOf, queryOf, type UsageView, viewOf } from './view.ts';

/** The organization's usage: over time, in total, request by request, and as CSV. */
export default function Usage({ params }: PageProps) {
  const { organization_id = '' } = params;
  const address = query.value.toString();
  const view = useMemo(() => viewOf(new URLSearchParams(address)), [address]);
  const [shown_at_ms, setShownAt] = useState(Date.now);
  /** How often "Refresh" was pressed: it asks again for what other changes of the view leave as it is. */
  const [refreshes, setRefreshes] = useState(0);
  const asked = useMemo(() => queryOf(view, shown_at_ms), [view, shown_at_ms]);
  const show = (changes: Partial<UsageView>, { replace = true } = {}) => {
    setShownAt(Date.now());
    setQuery(addressOf({ ...view, ...changes }), { replace });
  };
  return (
    <>
      <PageHeader
        title="Usage"
        description="What you asked, what it cost, and how long it took. Days are UTC."
        actions={
          <>
            <SearchBox
              name="request_id"
              label="Request id"
              placeholder="Find a request id"
              autocomplete="off"
              length_max={64}
              searched={view.request_id}
              submit="Find"
              onSearch={(request_id) => show({ request_id }, { replace: false })}
            />
            <Button
              onClick={() => {
                setShownAt(Date.now());
                setRefreshes((count) => count + 1);
              }}
            >
              Refresh
            </Button>
            <ButtonLink href={exportPath(organization_id, asked)} download="usage.csv">
              Export CSV
            </ButtonLink>
          </>
        }
      />
      <div class="stack">
        {view.request_id === null ? (
          <UsageOverview
            organization_id={organization_id}
            view={view}
            shown_at_ms={shown_at_ms}
            refreshes={refreshes}
            asked={asked}
            show={show}
          />
        ) : (
          <FoundRequest
            organization_id={organization_id}
            request_id={view.request_id}
            asked={asked}
            onClose={() => show({ request_id: null }, { replace: false })}
          />
        )}
      </div>
    </>
  );
}

/** Returns the address of the same requests as CSV, which the session's cookie can load. */
function exportPath(organization_id: string, asked: ReturnType<typeof queryOf>): string {
  const fields = Object.entries(asked).map(([name, value]): [string, string] => [name, String(value)]);
  return `/console/api/organizations/${organization_id}/usage/export.csv?${new URLSearchParams(fields)}`;
}
