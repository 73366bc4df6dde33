import { api, call } from '../client.ts';
import { ConfirmDialog } from '../components/dialog.tsx';
import { showToast } from '../components/toast.tsx';
import { navigate } from '../router.ts';
import { loadSession } from '../session.ts';

/** A dialog that asks before the reader leaves the organization, and then goes to the first page. */
export function LeaveDialog({
  organization_id,
  organization_name,
  user_id,
  is_open,
  onClose,
}: {
  readonly organization_id: string;
  readonly organization_name: string;
  /** The reader. */
  readonly user_id: string;
  readonly is_open: boolean;
  readonly onClose: () => void;
}) {
  return (
    <ConfirmDialog
      title={`Leave ${organization_name}?`}
      action="Leave organization"
      is_open={is_open}
      onClose={onClose}
      onConfirm={async () => {
        await call(api.organizations({ organization_id }).members({ user_id }).delete());
        // Before the navigation, which else would open the organization again that was shown last.
        await loadSession();
        navigate('/console', { replace: true });
        showToast(
          <>
            You have left <bdi>{organization_name}</bdi>.
          </>,
        );
      }}
    >
      <p>
        You lose access at once. Keys that you created keep working, and open invitations that you sent end.
      </p>
      <p>To come back, you need an invitation.</p>
    </ConfirmDialog>
  );
}
