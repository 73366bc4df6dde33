import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { ACTIONS } from '../components/table.tsx';
import type { PageProps } from '../page.ts';
import { loadSession, may, type Organization, organization, session } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { Invitations } from './invitations.tsx';
import { InviteDialog } from './invite-dialog.tsx';
import { LeaveDialog } from './leave-dialog.tsx';
import { RemoveDialog, RoleDialog } from './member-dialogs.tsx';
import { type Member, MemberTable } from './member-table.tsx';

/** The organization's members and open invitations. */
export default function Members(_: PageProps) {
  const here = organization.value;
  if (here === undefined || session.value.state !== 'signed_in') return null;
  return <MembersOf here={here} own_user_id={session.value.user.id} />;
}

/** The open dialog, and its member. */
type Open =
  | { readonly dialog: 'invite' | 'leave' }
  | { readonly dialog: 'role' | 'remove'; readonly member: Member };

function MembersOf({ here, own_user_id }: { readonly here: Organization; readonly own_user_id: string }) {
  const { id: organization_id, role: own_role } = here;
  const within = api.organizations({ organization_id });
  const may_manage = may('manage_members');
  const members = useLoaded(() => call(within.members.get()), []);
  const invitations = useLoaded(
    async () => (may_manage ? await call(within.invitations.get()) : { items: [] }),
    [may_manage],
  );
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  // The reader's own role may have changed, and invitations by the member may have ended.
  const reload = async () => {
    await Promise.all([members.reload(), loadSession()]);
    if (may('manage_members')) await invitations.reload();
  };
  const asked = (dialog: 'role' | 'remove') => (open?.dialog === dialog ? open.member : undefined);
  return (
    <>
      <PageHeader
        title="Members"
        description="Who is in your organization, and what they may do."
        actions={
          may_manage && (
            <Button kind="primary" onClick={() => setOpen({ dialog: 'invite' })}>
              Invite a member
            </Button>
          )
        }
      />
      <LoadedView loaded={members}>
        {({ items }) => <ChangeableMembers {...{ members: items, here, own_user_id, onOpen: setOpen }} />}
      </LoadedView>
      {may_manage && <Invitations {...{ organization_id, own_role, invitations }} />}
      <InviteDialog
        {...{ organization_id, own_role }}
        is_open={open?.dialog === 'invite'}
        onInvited={invitations.reload}
        onClose={close}
      />
      <RoleDialog
        {...{ organization_id, own_role }}
        member={asked('role')}
        is_self={asked('role')?.user_id === own_user_id}
        onDone={reload}
        onClose={close}
      />
      <RemoveDialog
        organization_id={organization_id}
        member={asked('remove')}
        onDone={reload}
        onClose={close}
      />
      <LeaveDialog
        organization_id={organization_id}
        organization_name={here.name}
        user_id={own_user_id}
        is_open={open?.dialog === 'leave'}
        onClose={close}
      />
    </>
  );
}

interface ChangeableMembersProps {
  readonly members: readonly Member[];
  readonly here: Organization;
  readonly own_user_id: string;
  readonly onOpen: (open: Open) => void;
}

function ChangeableMembers({ members, here, own_user_id, onOpen }: ChangeableMembersProps) {
  const owners = members.filter(({ role }) => role === 'owner').length;
  const isOnlyOwner = ({ role }: Member) => role === 'owner' && owners === 1;
  // Only owners may change owners, and the last one stays.
  const mayTouch = (member: Member) =>
    may('manage_members') && (member.role !== 'owner' || here.role === 'owner') && !isOnlyOwner(member);
  return (
    <>
      <MemberTable
        members={members}
        nameOf={({ name, user_id, has_second_factor }) => (
          <>
            <bdi>{name}</bdi> {user_id === own_user_id && <Badge tone="info">You</Badge>}{' '}
            {has_second_factor === true && <Badge tone="success">Two-step sign-in</Badge>}
          </>
        )}
        more={[
          {
            ...ACTIONS,
            cell: (member) => {
              const is_self = member.user_id === own_user_id;
              const may_touch = mayTouch(member);
              const may_leave = is_self && !isOnlyOwner(member);
              if (!may_touch && !may_leave) return null;
              return (
                <span class="row-actions">
                  {may_touch && (
                    <Button
                      size="small"
                      label={`Change the role of ${member.name}`}
                      onClick={() => onOpen({ dialog: 'role', member })}
                    >
                      Role…
                    </Button>
                  )}
                  {may_touch && !is_self && (
                    <Button
                      size="small"
                      label={`Remove ${member.name}`}
                      onClick={() => onOpen({ dialog: 'remove', member })}
                    >
                      Remove…
                    </Button>
                  )}
                  {may_leave && (
                    <Button
                      size="small"
                      label="Leave the organization"
                      onClick={() => onOpen({ dialog: 'leave' })}
                    >
                      Leave…
                    </Button>
                  )}
                </span>
              );
            },
          },
        ]}
      />
      {owners === 1 && (
        <p class="table-note">
          Every organization needs an owner, so the last one cannot leave or change roles.
        </p>
      )}
    </>
  );
}
