import { api, call } from '../client.ts';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { useLoadedPages } from '../use-loaded.ts';
import { KEY_COLUMNS, type Key } from './key-columns.tsx';

/** The keys that work no more, last revoked first. */
export function RevokedKeys({ organization_id }: { readonly organization_id: string }) {
  const revoked = useLoadedPages<Key>(
    (cursor) =>
      call(
        api
          .organizations({ organization_id })
          .keys.get({ query: { revoked: 'true', ...(cursor === null ? {} : { cursor }) } }),
      ),
    [],
  );
  return (
    <LoadedView loaded={revoked}>
      {(items) => (
        <Table
          caption="Revoked API keys"
          is_dense
          rows={items}
          keyOf={({ id }) => id}
          is_loading={revoked.is_loading}
          loadMore={revoked.loadMore}
          empty={
            <EmptyState title="No revoked keys">
              A key that is revoked or has expired, or whose project is archived, stays listed here.
            </EmptyState>
          }
          columns={[
            ...KEY_COLUMNS,
            { title: 'Last used', cell: ({ last_used_at_ms }) => <Time time_ms={last_used_at_ms} /> },
            { title: 'Revoked', cell: ({ revoked_at_ms }) => <Time time_ms={revoked_at_ms} /> },
          ]}
        />
      )}
    </LoadedView>
  );
}
