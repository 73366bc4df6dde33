import { type AnswerOf, api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchBox } from '../components/search-box.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { Tabs } from '../components/tabs.tsx';
import { Time } from '../components/time.tsx';
import { formatMoneyShort, formatNumber } from '../format.ts';
import { query, setQuery } from '../router.ts';
import { useLoadedPages } from '../use-loaded.ts';

type Found = AnswerOf<typeof api.operator.organizations.get>['items'][number];

const LISTS = [
  { value: 'all', label: 'All' },
  { value: 'unowned', label: 'Without an owner' },
] as const;

/** All organizations, newest first, or those that nobody owns, with a search. */
export default function Organizations() {
  const text = query.value.get('text');
  const list = query.value.get('list') === 'unowned' ? 'unowned' : 'all';
  const found = useLoadedPages<Found>(
    (cursor) =>
      call(
        api.operator.organizations.get({
          query: {
            ...(text === null ? {} : { text }),
            ...(list === 'all' ? {} : { owner: 'none' as const }),
            ...(cursor === null ? {} : { after: cursor }),
          },
        }),
      ),
    [text, list],
  );
  return (
    <>
      <PageHeader title="Organizations" description="Credit, tier and limits of every customer." />
      <div class="stack">
        <SearchBox
          name="text"
          label="Search"
          placeholder="Name, id or email address"
          searched={text}
          onSearch={(searched) => setQuery({ text: searched })}
          shows_all
        />
        <Tabs
          label="Organizations"
          options={LISTS}
          value={list}
          onChange={(chosen) => setQuery({ list: chosen === 'all' ? null : chosen })}
        >
          {found.error !== undefined && <ErrorState error={found.error} onRetry={found.reload} />}
          {(found.data !== undefined || found.is_loading) && (
            <Table
              caption="Organizations"
              rows={found.data}
              keyOf={({ id }) => id}
              is_loading={found.is_loading}
              loadMore={found.loadMore}
              empty={<Nothing text={text} list={list} />}
              columns={[
                {
                  title: 'Organization',
                  is_name: true,
                  cell: ({ id, name, suspended_at_ms, members }) => (
                    <span class="row">
                      <a href={`/console/operator/organizations/${id}`}>
                        <bdi>{name}</bdi>
                      </a>
                      {suspended_at_ms !== null && <Badge tone="danger">Suspended</Badge>}
                      {members === 0 && <Badge tone="warning">No owner</Badge>}
                    </span>
                  ),
                },
                {
                  title: 'Tier',
                  cell: ({ tier_in_force, dedicated }) => (
                    <span class="row">
                      {tier_in_force}
                      {Object.values(dedicated).some((value) => value !== null) && (
                        <Badge tone="info">Dedicated</Badge>
                      )}
                    </span>
                  ),
                },
                { title: 'Members', is_at_end: true, cell: ({ members }) => formatNumber(members) },
                { title: 'Held', is_at_end: true, cell: ({ held_micros }) => formatMoneyShort(held_micros) },
                {
                  title: 'Credit',
                  is_at_end: true,
                  cell: ({ credit_micros }) => formatMoneyShort(credit_micros),
                },
                { title: 'Last used', cell: ({ last_used_at_ms }) => <Time time_ms={last_used_at_ms} /> },
              ]}
            />
          )}
        </Tabs>
      </div>
    </>
  );
}

function Nothing({
  text,
  list,
}: {
  readonly text: string | null;
  readonly list: (typeof LISTS)[number]['value'];
}) {
  if (text !== null) {
    return (
      <EmptyState title="Nothing found">
        Search for a part of the name, of the id or of a member’s email address.
      </EmptyState>
    );
  }
  return list === 'all' ? (
    <EmptyState title="No organizations">Everybody who signs up gets one.</EmptyState>
  ) : (
    <EmptyState title="Every organization has an owner">
      One that is made at the command line without --owner is listed here.
    </EmptyState>
  );
}
