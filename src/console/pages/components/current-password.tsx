import { TextField } from './field.tsx';

/** The field for the present password. */
export function CurrentPasswordField({
  label = 'Password',
  name = 'password',
}: {
  readonly label?: string;
  readonly name?: string;
}) {
  return <TextField label={label} name={name} type="password" autocomplete="current-password" is_required />;
}
