import { useState } from 'preact/hooks';
import { ACCOUNT_ERRORS } from '../../../errors/errors.ts';
import { type AnswerOf, ApiError, api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { NameField } from '../components/field.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { session } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { canUsePasskeys, makePasskey } from './passkey-ceremony.ts';
import { PasswordDialog } from './password-dialog.tsx';

/** Characters, as in `src/accounts/names.ts`. */
const NAME_LENGTH_MAX = 100;

type Passkey = AnswerOf<typeof api.account.passkeys.get>['items'][number];

/** The passkeys of the reader, each of which signs in without the password and the code. */
export function Passkeys() {
  const passkeys = useLoaded(() => call(api.account.passkeys.get()), []);
  const [is_adding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Passkey>();
  const is_operator = session.value.state === 'signed_in' && session.value.user.is_operator;
  const { is_offered = true, items = [] } = passkeys.data ?? {};
  // Only an operator can give the service an address at which browsers take passkeys.
  if (!is_offered && items.length === 0 && !is_operator) return null;
  const may_add = is_offered && canUsePasskeys();
  return (
    <Section
      title="Passkeys"
      description="Sign in with a fingerprint, your face or a PIN, instead of the password and the code."
      actions={
        may_add &&
        passkeys.data !== undefined && <Button onClick={() => setAdding(true)}>Add a passkey…</Button>
      }
    >
      <LoadedView loaded={passkeys} lines={1}>
        {() => (
          <>
            {!is_offered && (
              <Notice title="No passkeys at this address">
                Browsers take passkeys for a name with https. Set the service’s public address to one.
              </Notice>
            )}
            {is_offered && !canUsePasskeys() && (
              <Notice title="This browser cannot make passkeys for this page: it is too old." />
            )}
            {(is_offered || items.length > 0) && <PasskeyTable items={items} onRemove={setRemoved} />}
          </>
        )}
      </LoadedView>
      {is_adding && <AddDialog onDone={passkeys.reload} onClose={() => setAdding(false)} />}
      {removed !== undefined && (
        <RemoveDialog removed={removed} onDone={passkeys.reload} onClose={() => setRemoved(undefined)} />
      )}
    </Section>
  );
}

function PasskeyTable({
  items,
  onRemove,
}: {
  readonly items: readonly Passkey[];
  readonly onRemove: (passkey: Passkey) => void;
}) {
  return (
    <Table
      caption="Passkeys"
      rows={items}
      keyOf={({ id }) => id}
      empty={
        <EmptyState title="No passkeys">
          A passkey is kept by your device or your password manager. Unlike a password, it cannot be guessed,
          forgotten or given to a fake page.
        </EmptyState>
      }
      columns={[
        { title: 'Name', is_name: true, cell: ({ name }) => name },
        { title: 'Added', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
        {
          title: 'Last used',
          cell: ({ last_used_at_ms }) =>
            last_used_at_ms === null ? 'Never' : <Time time_ms={last_used_at_ms} />,
        },
        {
          ...ACTIONS,
          cell: (passkey) => (
            <Button
              size="small"
              label={`Remove the passkey ${passkey.name}`}
              onClick={() => onRemove(passkey)}
            >
              Remove…
            </Button>
          ),
        },
      ]}
    />
  );
}

interface DialogParts {
  readonly onDone: () => Promise<unknown>;
  readonly onClose: () => void;
}

function AddDialog({ onDone, onClose }: DialogParts) {
  return (
    <PasswordDialog
      title="Add a passkey"
      submit="Continue"
      fields={['name']}
      onDone={onClose}
      onClose={onClose}
      onPassword={async (password, values) => {
        const name = values.text('name');
        // The service says so too, but only once the browser has made a passkey, which would then be of no use.
        if ([...name].length > NAME_LENGTH_MAX) {
          const { message, param, status } = ACCOUNT_ERRORS.invalid_name;
          throw new ApiError('invalid_name', message, param, null, status);
        }
        const request = await call(api.account.passkeys.begin.post({ password }));
        const made = await makePasskey(request);
        await call(api.account.passkeys.post({ name, ...made }));
        await onDone();
        showToast('The passkey is added.');
      }}
    >
      <p>Enter your password. Then your browser asks where to keep the passkey.</p>
      <NameField help="To tell your passkeys apart, such as Work laptop." is_required={false} />
    </PasswordDialog>
  );
}

function RemoveDialog({ removed, onDone, onClose }: DialogParts & { readonly removed: Passkey }) {
  return (
    <PasswordDialog
      title={`Remove the passkey ${removed.name}?`}
      submit="Remove"
      kind="danger"
      onDone={onClose}
      onClose={onClose}
      onPassword={async (password) => {
        await call(api.account.passkeys({ passkey_id: removed.id }).delete({ password }));
        await onDone();
        showToast('The passkey is removed.');
      }}
    >
      <p>It signs nobody in from then on, and all your other sessions end. Enter your password to go on.</p>
    </PasswordDialog>
  );
}
