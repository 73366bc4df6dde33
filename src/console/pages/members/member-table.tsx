import type { ComponentChildren } from 'preact';
import type { AnswerOf, OfOrganization } from '../client.ts';
import { SearchedTable } from '../components/searched-table.tsx';
import type { SortableColumn } from '../components/sortable-table.tsx';
import { Time } from '../components/time.tsx';
import { ROLE_NAMES } from './role-names.ts';

/** A member of the API's list. */
export type Member = AnswerOf<OfOrganization['members']['get']>['items'][number];

/** A member as operators see them too. */
type AnyMember = Omit<Member, 'has_second_factor'>;

interface MemberTableProps<Row extends AnyMember> {
  readonly members: readonly Row[];
  readonly nameOf?: (member: Row) => ComponentChildren;
  /** The columns after those that every list of members has. */
  readonly more?: readonly SortableColumn<Row>[];
  readonly empty?: ComponentChildren;
}

/** The members of an organization, of whom there may be thousands: searched, sorted by their titles, in pages. */
export function MemberTable<Row extends AnyMember>({
  members,
  nameOf = ({ name }) => <bdi>{name}</bdi>,
  more = [],
  empty,
}: MemberTableProps<Row>) {
  return (
    <SearchedTable
      caption="Members"
      plural="members"
      placeholder="Search by name, email address or role"
      textsOf={({ name, email, role }) => [name, email, ROLE_NAMES[role]]}
      rows={members}
      keyOf={({ user_id }) => user_id}
      empty={empty}
      columns={[
        { title: 'Name', is_name: true, cell: nameOf, sortBy: ({ name }) => name },
        {
          title: 'Email address',
          cell: ({ email }) => <span class="breakable">{email}</span>,
          sortBy: ({ email }) => email,
        },
        { title: 'Role', cell: ({ role }) => ROLE_NAMES[role], sortBy: ({ role }) => ROLE_NAMES[role] },
        {
          title: 'Joined',
          cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} />,
          sortBy: ({ created_at_ms }) => created_at_ms,
        },
        ...more,
      ]}
    />
  );
}
