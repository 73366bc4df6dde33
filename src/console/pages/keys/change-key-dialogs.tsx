import { api, call, callForSecret } from '../client.ts';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { Select } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { LIMIT_FIELD, LimitField } from '../components/limit-field.tsx';
import { Notice } from '../components/notice.tsx';
import { showToastAbout } from '../components/toast.tsx';
import { enteredAmount } from '../entered-amount.ts';
import {
  keepsExpiry,
  LifetimeField,
  lifetimeIn,
  NO_OVERLAP,
  OVERLAPS,
  presentExpiry,
  sameLifetime,
} from './expiry.tsx';
import type { Key } from './key-columns.tsx';
import { NewKeyDialog } from './new-key-dialog.tsx';

interface ChangeKeyProps {
  readonly organization_id: string;
  /** Undefined while the dialog is closed. */
  readonly changed: Key | undefined;
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

/** The key of a dialog, told apart from others of its name. */
function NamedKey({ name, display_prefix, project_name }: Key) {
  return (
    <>
      <strong>
        <bdi>{name}</bdi>
      </strong>{' '}
      (<code>{display_prefix}…</code>) in <bdi>{project_name}</bdi>
    </>
  );
}

/** A dialog that changes when a key expires. */
export function ExpiryDialog({ organization_id, changed, onChanged, onClose }: ChangeKeyProps) {
  return (
    <Dialog title="When does this key expire?" is_open={changed !== undefined} onClose={onClose}>
      {changed !== undefined && (
        <Form
          submit="Save"
          onCancel={onClose}
          onSubmit={async (values) => {
            if (keepsExpiry(values)) return;
            const lifetime_ms = lifetimeIn(values);
            await call(
              api.organizations({ organization_id }).keys({ key_id: changed.id }).patch({ lifetime_ms }),
            );
            await onChanged();
            showToastAbout(changed.name, lifetime_ms === null ? 'never expires.' : 'has another expiry.');
          }}
          onDone={onClose}
        >
          <p>
            <NamedKey {...changed} />
          </p>
          <LifetimeField first={presentExpiry(changed)} />
        </Form>
      )}
    </Dialog>
  );
}

/** A dialog that changes what a key and those that replace it may spend in a month. */
export function LimitDialog({ organization_id, changed, onChanged, onClose }: ChangeKeyProps) {
  return (
    <Dialog title="What may this key spend?" is_open={changed !== undefined} onClose={onClose}>
      {changed !== undefined && (
        <Form
          submit="Save"
          fields={[LIMIT_FIELD]}
          onCancel={onClose}
          onSubmit={async (values) => {
            const monthly_limit_micros = enteredAmount(values.text(LIMIT_FIELD), LIMIT_FIELD);
            await call(
              api
                .organizations({ organization_id })
                .keys({ key_id: changed.id })
                .limit.post({ monthly_limit_micros }),
            );
            await onChanged();
            showToastAbout(
              changed.name,
              monthly_limit_micros === null ? 'has no limit.' : 'has another limit.',
            );
          }}
          onDone={onClose}
        >
          <p>
            <NamedKey {...changed} />
          </p>
          <LimitField limit_micros={changed.monthly_limit_micros} />
        </Form>
      )}
    </Dialog>
  );
}

interface RotateKeyProps extends ChangeKeyProps {
  /** False at the limit of active keys, where only a key that is revoked at once makes room for the new one. */
  readonly has_room: boolean;
}

/** A dialog that puts a new key in place of another one, which works on for a while, and shows the new key once. */
export function RotateKeyDialog({ organization_id, changed, has_room, onChanged, onClose }: RotateKeyProps) {
  return (
    <NewKeyDialog
      title="Rotate this key?"
      title_of_key="Copy the new key now"
      is_open={changed !== undefined}
      onClose={onClose}
    >
      {(onCreate, close) =>
        changed !== undefined && (
          <Form
            submit="Create the new key"
            fields={['overlap_ms']}
            onCancel={close}
            onSubmit={async (values) => {
              const { name, id: key_id } = changed;
              const overlap_ms = Number(values.exact('overlap_ms'));
              const asked = { overlap_ms, lifetime_ms: lifetimeIn(values) };
              const { key } = await callForSecret(
                api.organizations({ organization_id }).keys({ key_id }).rotate.post(asked),
              );
              onCreate({ name, key });
              await onChanged();
            }}
          >
            <p>
              A new key of the same name and project is created. Give it to the programs that use{' '}
              <code>{changed.display_prefix}…</code>
              {has_room ? '; until they have it, both work.' : '.'}
            </p>
            {!has_room && (
              <Notice
                tone="warning"
                title="Both keys cannot work at once: the limit of active keys is reached."
              >
                Revoke a key that you no longer use first, or let this one end now: its programs are refused
                until they have the new key.
              </Notice>
            )}
            <Select
              label="The old key works for another"
              name="overlap_ms"
              options={has_room ? OVERLAPS : [NO_OVERLAP]}
            />
            <LifetimeField label="The new key expires" first={sameLifetime(changed)} />
          </Form>
        )
      }
    </NewKeyDialog>
  );
}

/** A dialog that asks before it revokes a key. */
export function RevokeKeyDialog({ organization_id, changed, onChanged, onClose }: ChangeKeyProps) {
  return (
    <ConfirmDialog
      title="Revoke this key?"
      action="Revoke key"
      is_open={changed !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        if (changed === undefined) return;
        await call(api.organizations({ organization_id }).keys({ key_id: changed.id }).delete());
        await onChanged();
        showToastAbout(changed.name, 'is revoked.');
      }}
    >
      {changed !== undefined && (
        <p>
          Programs that use <NamedKey {...changed} /> are refused within 60 seconds. This cannot be undone.
        </p>
      )}
    </ConfirmDialog>
  );
}
