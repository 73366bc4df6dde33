import { useState } from 'preact/hooks';
import type { Role } from '../../../contract/roles.ts';
import { api, call } from '../client.ts';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { showToast } from '../components/toast.tsx';
import { RoleField } from './role-field.tsx';

interface InviteDialogProps {
  readonly organization_id: string;
  readonly own_role: Role;
  readonly is_open: boolean;
  readonly onInvited: () => Promise<void>;
  readonly onClose: () => void;
}

/** A dialog that asks for the address and role of an invitation. */
export function InviteDialog({ is_open, ...props }: InviteDialogProps) {
  return (
    <Dialog title="Invite a member" is_open={is_open} onClose={props.onClose}>
      <InviteForm {...props} />
    </Dialog>
  );
}

function InviteForm({ organization_id, own_role, onInvited, onClose }: Omit<InviteDialogProps, 'is_open'>) {
  const [role, setRole] = useState<Role>('developer');
  return (
    <Form
      submit="Send invitation"
      fields={['email']}
      onCancel={onClose}
      onSubmit={async (values) => {
        const email = values.text('email');
        await call(api.organizations({ organization_id }).invitations.post({ email, role }));
        await onInvited();
        showToast(`An invitation is on its way to ${email}.`);
      }}
      onDone={onClose}
    >
      <TextField
        label="Email address"
        name="email"
        type="email"
        autocomplete="off"
        help="The link in the mail works for this email address only, once, for 7 days."
        is_required
      />
      <RoleField own_role={own_role} value={role} onChange={setRole} />
    </Form>
  );
}
