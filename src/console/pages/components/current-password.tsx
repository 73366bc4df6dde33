import { TextField } from './field.tsx';

/** The field for the password that somebody has already. */
export function CurrentPasswordField({
  label = 'Password',
  name = 'password',
}: {
  readonly label?: string;
  readonly name?: string;
}) {
  return <TextField label={label} name={name} type="password" autocomplete="current-password" is_required />;
}
