import { TextField } from './field.tsx';

/** The lengths that better-auth accepts by default. */
const LENGTH_MIN = 8;
const LENGTH_MAX = 128;

/** The field for a new password. */
export function NewPasswordField({
  label = 'Password',
  name,
}: {
  readonly label?: string;
  readonly name: string;
}) {
  return (
    <TextField
      label={label}
      name={name}
      type="password"
      autocomplete="new-password"
      length_min={LENGTH_MIN}
      length_max={LENGTH_MAX}
      help={`At least ${LENGTH_MIN} characters.`}
      is_required
    />
  );
}
