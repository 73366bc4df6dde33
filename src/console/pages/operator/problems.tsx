import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchBox } from '../components/search-box.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { query, setQuery } from '../router.ts';
import { useLoaded } from '../use-loaded.ts';

/** The last failures by the service's own fault. */
export default function Problems() {
  const request_id = query.value.get('request_id');
  const problems = useLoaded(
    () => call(api.operator.problems.get({ query: request_id === null ? {} : { request_id } })),
    [request_id],
  );
  return (
    <>
      <PageHeader
        title="Problems"
        description="The last failures that were the service's own fault, on this node, since its start. The log has their stacks, and every node has its own."
        actions={
          <Button is_busy={problems.is_loading} onClick={problems.reload}>
            Look again
          </Button>
        }
      />
      <div class="stack">
        <SearchBox
          name="request_id"
          label="Request id"
          placeholder="Request id, such as req_…"
          searched={request_id}
          onSearch={(text) => setQuery({ request_id: text })}
          shows_all
        />
        {problems.error !== undefined && <ErrorState error={problems.error} onRetry={problems.reload} />}
        {(problems.data !== undefined || problems.is_loading) && (
          <Table
            caption="Problems"
            rows={problems.data?.items.map((problem, place) => ({ ...problem, place_in_list: place }))}
            keyOf={({ place_in_list }) => String(place_in_list)}
            empty={
              request_id === null ? (
                <EmptyState title="No problems">Nothing has failed on this node since it started.</EmptyState>
              ) : (
                <EmptyState title="No problem of this request">
                  It did not fail through the service's fault, or this node has not answered it or no longer
                  remembers it: look into the log.
                </EmptyState>
              )
            }
            columns={[
              {
                title: 'Error',
                is_name: true,
                cell: ({ error, place }) => (
                  <span class="prose-cell">
                    {error}
                    {place !== '' && <code class="place">{place.replace(/^at /, '')}</code>}
                  </span>
                ),
              },
              { title: 'Step', cell: ({ step }) => step.replaceAll('_', ' ') },
              { title: 'Sent to the client', cell: ({ code }) => code ?? <span class="muted">Nothing</span> },
              { title: 'Model', cell: ({ model }) => model ?? '' },
              {
                title: 'Request',
                cell: (problem) =>
                  problem.request_id === null ? (
                    <span class="muted">Background</span>
                  ) : (
                    <code class="wrap">{problem.request_id}</code>
                  ),
              },
              { title: 'When', cell: ({ at_ms }) => <Time time_ms={at_ms} none="Unknown" /> },
            ]}
          />
        )}
      </div>
    </>
  );
}
