import { InvalidArgumentError } from 'commander';
import { wholeNumberBetween } from '../config.ts';
import { parseDollars } from '../money.ts';

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Dollars on the command line, in micro-dollars. */
export function dollars(text: string): number {
  const amount_micros = parseDollars(text);
  if (amount_micros === null) throw new InvalidArgumentError('Give dollars such as 25 or 0.50.');
  return amount_micros;
}

/** The word that takes a value away. It stays a word until it is used, because commander turns a null into ''. */
export const NONE = 'none';

/** Dollars, in micro-dollars, or `none`. */
export function dollarsOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : dollars(text);
}

/** Null for `none`. */
export function nullIfNone<T>(value: T | typeof NONE): T | null {
  return value === NONE ? null : value;
}

/** The largest number of as many digits as are read. */
const WHOLE_NUMBER_MAX = 999_999_999_999_999;

/** A whole number from 0. */
export const wholeNumber = wholeNumberBetween(0, WHOLE_NUMBER_MAX, 'Give a whole number.');

/** A whole number or `none`. */
export function wholeNumberOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : wholeNumber(text);
}

/** A date (its UTC midnight) or a date and time with its zone, as Unix milliseconds. */
export function time(text: string): number {
  const time_ms = DATE.test(text) || TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time_ms)) {
    throw new InvalidArgumentError(
      'Give a UTC date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z.',
    );
  }
  return time_ms;
}
