import { TextField } from './field.tsx';

/** The lengths that sign-in accepts. */
const LENGTH_MIN = 10;
const LENGTH_MAX = 128;

/** The field for a new password, by the name that its refusals have. */
export function NewPasswordField({ label = 'Password' }: { readonly label?: string }) {
  return (
    <TextField
      label={label}
      name="password"
      type="password"
      autocomplete="new-password"
      length_min={LENGTH_MIN}
      length_max={LENGTH_MAX}
      help={`At least ${LENGTH_MIN} characters, and none of the most common passwords.`}
      is_required
    />
  );
}
