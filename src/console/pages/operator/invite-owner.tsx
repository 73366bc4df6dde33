import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { showToast } from '../components/toast.tsx';

/** A form that mails an invitation as owner, for an organization that has no member yet. */
export function InviteOwner({
  organization_id,
  onInvited,
}: {
  readonly organization_id: string;
  readonly onInvited: () => Promise<void>;
}) {
  const [is_open, setOpen] = useState(false);
  return (
    <>
      <Button kind="primary" onClick={() => setOpen(true)}>
        Invite an owner…
      </Button>
      <Dialog title="Invite an owner" is_open={is_open} onClose={() => setOpen(false)}>
        <Form
          submit="Send invitation"
          fields={['email']}
          onCancel={() => setOpen(false)}
          onSubmit={async (values) => {
            const email = values.text('email');
            await call(api.operator.organizations({ organization_id }).owner.post({ email }));
            await onInvited();
            showToast(`An invitation is on its way to ${email}.`);
          }}
          onDone={() => setOpen(false)}
        >
          <TextField
            label="Email address"
            name="email"
            type="email"
            autocomplete="off"
            help="The link in the mail works for this email address only, once, for 7 days."
            is_required
          />
        </Form>
      </Dialog>
    </>
  );
}
