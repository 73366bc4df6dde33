import { enteredText } from '../entered-amount.ts';
import { TextField } from './field.tsx';

/** The name of the field in forms and refusals. */
export const LIMIT_FIELD = 'spend_limit';

/** The field for a monthly spend limit; `limit_micros` is the present one, null for none. */
export function LimitField({ limit_micros }: { readonly limit_micros: number | null }) {
  return (
    <TextField
      label="Monthly spend limit"
      name={LIMIT_FIELD}
      prefix="$"
      inputmode="decimal"
      autocomplete="off"
      value={enteredText(limit_micros)}
      help="Requests beyond it are refused until next month (UTC). Leave it empty for no limit."
    />
  );
}
