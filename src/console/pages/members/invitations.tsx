import { useState } from 'preact/hooks';
import type { Role } from '../../../contract/roles.ts';
import { type AnswerOf, api, call, type OfOrganization } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Section } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { attempt, showToast } from '../components/toast.tsx';
import type { Loaded } from '../use-loaded.ts';
import { ROLE_NAMES } from './role-names.ts';

type InvitationList = AnswerOf<OfOrganization['invitations']['get']>;
type Invitation = InvitationList['items'][number];

/** The open invitations, for members who may invite: send again, revoke. */
export function Invitations({
  organization_id,
  own_role,
  invitations,
}: {
  readonly organization_id: string;
  readonly own_role: Role;
  readonly invitations: Loaded<InvitationList>;
}) {
  const [revoking, setRevoking] = useState<Invitation>();
  const [sending_id, setSendingId] = useState<string>();
  const within = api.organizations({ organization_id });
  const sendAgain = ({ id, email }: Invitation) =>
    attempt(async () => {
      setSendingId(id);
      try {
        await call(within.invitations({ invitation_id: id }).resend.post());
        await invitations.reload();
        showToast(`A new link is on its way to ${email}. The one before ends.`);
      } finally {
        setSendingId(undefined);
      }
    });
  return (
    <Section title="Open invitations" description="Sent, but not accepted yet.">
      <LoadedView loaded={invitations} lines={2}>
        {({ items }) => (
          <Table
            caption="Open invitations"
            rows={items}
            keyOf={({ id }) => id}
            empty={<EmptyState title="No open invitations" />}
            columns={[
              { title: 'Email address', is_name: true, cell: ({ email }) => email },
              { title: 'Role', cell: ({ role }) => ROLE_NAMES[role] },
              { title: 'Invited by', cell: ({ invited_by_name }) => invited_by_name ?? 'Operator' },
              { title: 'Sent', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
              { title: 'Ends', cell: ({ expires_at_ms }) => <Time time_ms={expires_at_ms} /> },
              {
                ...ACTIONS,
                cell: (invitation) =>
                  (invitation.role !== 'owner' || own_role === 'owner') && (
                    <span class="row-actions">
                      <Button
                        size="small"
                        label={`Send again the invitation to ${invitation.email}`}
                        is_busy={sending_id === invitation.id}
                        onClick={() => sendAgain(invitation)}
                      >
                        Send again
                      </Button>
                      <Button
                        size="small"
                        label={`Revoke the invitation to ${invitation.email}`}
                        onClick={() => setRevoking(invitation)}
                      >
                        Revoke…
                      </Button>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </LoadedView>
      <ConfirmDialog
        title="Revoke this invitation?"
        action="Revoke invitation"
        is_open={revoking !== undefined}
        onClose={() => setRevoking(undefined)}
        onConfirm={async () => {
          if (revoking === undefined) return;
          await call(within.invitations({ invitation_id: revoking.id }).delete());
          await invitations.reload();
          showToast(`The invitation to ${revoking.email} is revoked.`);
        }}
      >
        <p>The link that was mailed to {revoking?.email} ends.</p>
      </ConfirmDialog>
    </Section>
  );
}
