import type { api } from '../client.ts';
import type { Column } from '../components/table.tsx';
import { Time } from '../components/time.tsx';

type KeyList = NonNullable<Awaited<ReturnType<ReturnType<typeof api.organizations>['keys']['get']>>['data']>;

/** A key of the API's list. */
export type Key = KeyList['items'][number];

/** The common columns of both lists of keys. */
export const KEY_COLUMNS: readonly Column<Key>[] = [
  { title: 'Name', is_name: true, cell: ({ name }) => name },
  { title: 'Key', cell: ({ display_prefix }) => <code>{display_prefix}…</code> },
  { title: 'Project', cell: ({ project_name }) => project_name },
  { title: 'Creator', cell: ({ created_by_name }) => created_by_name ?? 'Operator' },
  { title: 'Created', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
];
