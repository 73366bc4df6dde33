import { TextField } from '../components/field.tsx';

/** The field for a code of the app, at set-up and at sign-in. */
export function CodeField({ label = 'Code', help }: { readonly label?: string; readonly help?: string }) {
  return (
    <TextField
      label={label}
      name="code"
      autocomplete="one-time-code"
      {...(help === undefined ? { inputmode: 'numeric' as const } : { help })}
      is_required
    />
  );
}
