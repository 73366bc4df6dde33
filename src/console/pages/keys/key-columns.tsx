import type { AnswerOf, OfOrganization } from '../client.ts';
import type { SortableColumn } from '../components/sortable-table.tsx';
import { Time } from '../components/time.tsx';

type KeyList = AnswerOf<OfOrganization['keys']['get']>;

/** A key of the API's list. */
export type Key = KeyList['items'][number];

/** The common columns of both lists of keys. */
export const KEY_COLUMNS: readonly SortableColumn<Key>[] = [
  {
    title: 'Name',
    is_name: true,
    cell: ({ name }) => <span class="breakable">{name}</span>,
    sortBy: ({ name }) => name,
  },
  { title: 'Key', cell: ({ display_prefix }) => <code>{display_prefix}…</code> },
  {
    title: 'Project',
    cell: ({ project_name }) => (
      <span class="breakable shortened" title={project_name}>
        {project_name}
      </span>
    ),
    sortBy: ({ project_name }) => project_name,
  },
  {
    title: 'Creator',
    cell: ({ created_by_name }) => <span class="breakable">{created_by_name ?? 'Operator'}</span>,
    sortBy: ({ created_by_name }) => created_by_name ?? 'Operator',
  },
  {
    title: 'Created',
    cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} />,
    sortBy: ({ created_at_ms }) => created_at_ms,
  },
];

/** Returns the texts by which a key is searched. */
export function searchedTextsOf({
  name,
  display_prefix,
  project_name,
  created_by_name,
}: Key): readonly string[] {
  return [name, display_prefix, project_name, created_by_name ?? 'Operator'];
}
