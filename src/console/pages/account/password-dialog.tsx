import type { ComponentChildren } from 'preact';
import { CurrentPasswordField } from '../components/current-password.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Form, type FormValues } from '../components/form.tsx';

/** A dialog that asks for the password before a sensitive change. Its children may be fields of the change. */
export function PasswordDialog({
  title,
  submit,
  kind = 'primary',
  onPassword,
  onDone,
  onClose,
  children,
  fields = [],
}: {
  readonly title: string;
  readonly submit: string;
  readonly kind?: 'primary' | 'danger';
  readonly onPassword: (password: string, values: FormValues) => Promise<void>;
  /** Called after `onPassword`, unless the dialog is gone. */
  readonly onDone?: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** The names of the fields among the children. */
  readonly fields?: readonly string[];
}) {
  return (
    <Dialog title={title} is_open onClose={onClose}>
      <Form
        submit={submit}
        kind={kind}
        fields={['password', ...fields]}
        onCancel={onClose}
        onSubmit={(values) => onPassword(values.exact('password'), values)}
        onDone={onDone}
      >
        {children}
        <CurrentPasswordField />
      </Form>
    </Dialog>
  );
}
