import { formatDollars, parseDollars } from '../../contract/money.ts';
import { ApiError } from './client.ts';

/**
 * Returns the dollars that somebody entered in micro-dollars; null for an empty field. Throws `invalid_amount` about that
 * field for anything else.
 */
export function enteredAmount(text: string, field: string): number | null {
  const entered = text.replace(/^\$/, '');
  if (entered === '') return null;
  const amount_micros = parseDollars(entered);
  if (amount_micros === null) {
    throw new ApiError('invalid_amount', 'Enter an amount such as 25 or 12.50.', field, null, 422);
  }
  return amount_micros;
}

/** Returns an amount as a person would enter it, without trailing zeros: `25`, `12.50`, `0.000150`; empty for none. */
export function enteredText(amount_micros: number | null): string {
  if (amount_micros === null) return '';
  return formatDollars(amount_micros)
    .replace(/\.0+$/, '')
    .replace(/(\.\d\d)0+$/, '$1');
}
