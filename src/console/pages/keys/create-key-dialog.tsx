import { api, callForSecret } from '../client.ts';
import { NameField, Select } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { LIMIT_FIELD, LimitField } from '../components/limit-field.tsx';
import { Notice } from '../components/notice.tsx';
import { enteredAmount } from '../entered-amount.ts';
import { organizationPath } from '../paths.ts';
import { LifetimeField, lifetimeIn } from './expiry.tsx';
import { type CreatedKey, NewKeyDialog } from './new-key-dialog.tsx';

interface CreateKeyDialogProps {
  readonly organization_id: string;
  /** The active projects. */
  readonly projects: readonly { readonly id: string; readonly name: string }[];
  /** The number of keys that can still be created. */
  readonly left: number;
  readonly is_open: boolean;
  readonly onCreated: () => Promise<void>;
  readonly onClose: () => void;
}

/** A dialog that asks for name and project of a new key, and then shows the key. */
export function CreateKeyDialog({ is_open, onClose, ...props }: CreateKeyDialogProps) {
  return (
    <NewKeyDialog title="Create a key" title_of_key="Copy the key now" is_open={is_open} onClose={onClose}>
      {(onCreate, close) => <NewKey {...props} onCreate={onCreate} onClose={close} />}
    </NewKeyDialog>
  );
}

interface NewKeyProps extends Omit<CreateKeyDialogProps, 'is_open'> {
  readonly onCreate: (created: CreatedKey) => void;
}

function NewKey({ organization_id, projects, left, onCreate, onCreated, onClose }: NewKeyProps) {
  if (projects.length === 0) {
    return (
      <Notice tone="warning" title="There is no active project">
        A key belongs to a project:{' '}
        <a href={organizationPath(organization_id, 'projects')}>create one first</a>.
      </Notice>
    );
  }
  return (
    <Form
      submit="Create key"
      fields={['name', 'project_id', LIMIT_FIELD]}
      onCancel={onClose}
      onSubmit={async (values) => {
        const name = values.text('name');
        const project_id = values.exact('project_id');
        const monthly_limit_micros = enteredAmount(values.text(LIMIT_FIELD), LIMIT_FIELD);
        const asked = { project_id, name, lifetime_ms: lifetimeIn(values), monthly_limit_micros };
        const { key } = await callForSecret(api.organizations({ organization_id }).keys.post(asked));
        onCreate({ name, key });
        await onCreated();
      }}
    >
      <NameField help="For example, the program that will use it." />
      <Select
        label="Project"
        name="project_id"
        options={projects.map(({ id, name }) => ({ value: id, label: name }))}
        help="Its usage counts there. You cannot change this later."
      />
      <LifetimeField />
      <LimitField limit_micros={null} />
      {left === 1 && <Notice tone="warning" title="This is the last key that you can create." />}
    </Form>
  );
}
