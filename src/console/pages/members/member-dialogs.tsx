import { useState } from 'preact/hooks';
import { mayInviteAs, ROLES, type Role } from '../../../contract/roles.ts';
import { api, call } from '../client.ts';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { Form } from '../components/form.tsx';
import { Notice } from '../components/notice.tsx';
import { showToastAbout } from '../components/toast.tsx';
import { organizationPath } from '../paths.ts';
import type { Member } from './member-table.tsx';
import { RoleField } from './role-field.tsx';
import { ROLE_NAMES } from './role-names.ts';

interface MemberDialogProps {
  readonly organization_id: string;
  /** The member of the dialog; undefined for none. */
  readonly member: Member | undefined;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

interface RoleDialogProps extends MemberDialogProps {
  readonly own_role: Role;
  readonly is_self: boolean;
}

/** A dialog that asks for another role of a member. */
export function RoleDialog({ member, ...props }: RoleDialogProps) {
  return (
    <Dialog
      title={`Change the role of ${member?.name ?? ''}`}
      is_open={member !== undefined}
      onClose={props.onClose}
    >
      {member !== undefined && <RoleForm {...props} member={member} />}
    </Dialog>
  );
}

function RoleForm({
  organization_id,
  member,
  own_role,
  is_self,
  onDone,
  onClose,
}: RoleDialogProps & { readonly member: Member }) {
  const [role, setRole] = useState<Role>(member.role);
  return (
    <Form
      submit="Change role"
      onCancel={onClose}
      is_disabled={role === member.role}
      onSubmit={async () => {
        await call(
          api.organizations({ organization_id }).members({ user_id: member.user_id }).patch({ role }),
        );
        await onDone();
        showToastAbout(member.name, `is now ${ROLE_NAMES[role].toLowerCase()}.`);
      }}
      onDone={onClose}
    >
      <RoleField own_role={own_role} value={role} onChange={setRole} />
      {is_self && role !== member.role && (
        <Notice tone="warning" title="This is your own role.">
          Only somebody else can give it back to you.
        </Notice>
      )}
      {ROLES.some((one) => mayInviteAs(member.role, one) && !mayInviteAs(role, one)) && (
        <p>Open invitations that {is_self ? 'you' : 'they'} sent, and could not send any more, end.</p>
      )}
    </Form>
  );
}

/** A dialog that asks before a member is removed. */
export function RemoveDialog({ organization_id, member, onDone, onClose }: MemberDialogProps) {
  return (
    <ConfirmDialog
      title={`Remove ${member?.name ?? ''}?`}
      action="Remove member"
      is_open={member !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        if (member === undefined) return;
        await call(api.organizations({ organization_id }).members({ user_id: member.user_id }).delete());
        await onDone();
        showToastAbout(member.name, 'is removed.');
      }}
    >
      <p>
        {member?.email} will see nothing of the organization any more, and open invitations that they sent
        end.
      </p>
      <p>
        Keys that they created keep working. Revoke those that they know on the{' '}
        <a href={organizationPath(organization_id, 'keys')}>keys page</a>.
      </p>
    </ConfirmDialog>
  );
}
