import { InvalidArgumentError } from 'commander';
import { DURATION, wholeNumberBetween } from '../config/setting.ts';
import { ENTRY_ID } from '../contract/identifiers.ts';
import { parseDollars } from '../contract/money.ts';
import { systemClock } from '../time/clock.ts';
import { isDay } from '../time/days.ts';

const TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Parses dollars on the command line into micro-dollars. */
export function dollars(text: string): number {
  const amount_micros = parseDollars(text);
  if (amount_micros === null) throw new InvalidArgumentError('Give dollars such as 25 or 0.50.');
  return amount_micros;
}

/** The word that removes a value. It stays a word until its use, because commander turns a null into ''. */
export const NONE = 'none';

/** Parses dollars into micro-dollars, or `none`. */
export function dollarsOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : dollars(text);
}

/** Returns null for `none`. */
export function nullIfNone<T>(value: T | typeof NONE): T | null {
  return value === NONE ? null : value;
}

/** Parses the id of an entry by hand. */
export function entryId(text: string): string {
  if (!ENTRY_ID.test(text)) throw new InvalidArgumentError('Give the id as the failed command printed it.');
  return text;
}

/** The largest number with the most digits that are read. */
const WHOLE_NUMBER_MAX = 999_999_999_999_999;

/** Parses a whole number from 0. */
export const wholeNumber = wholeNumberBetween(0, WHOLE_NUMBER_MAX, 'Give a whole number.');

/** Parses a whole number from 1. */
export const wholeNumberFromOne = wholeNumberBetween(1, WHOLE_NUMBER_MAX, 'Give a whole number from 1.');

/** Parses a whole number or `none`. */
export function wholeNumberOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : wholeNumber(text);
}

/** Parses a date (its UTC midnight) or a date and time with its zone into Unix milliseconds. */
export function time(text: string): number {
  const [, day = ''] = TIME.exec(text) ?? [];
  const time_ms = isDay(day) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time_ms)) {
    throw new InvalidArgumentError(
      'Give a UTC date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z.',
    );
  }
  return time_ms;
}

/** Parses a duration from now, a date or a time into Unix milliseconds. */
export function timeAhead(text: string): number {
  return /^\d+[a-z]$/.test(text) ? systemClock.now_ms() + DURATION.parse(text) : time(text);
}

/** Parses as `timeAhead` does, or `none`. */
export function timeAheadOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : timeAhead(text);
}

/** Parses a duration such as `7d` into milliseconds, or `none`. */
export function durationOrNone(text: string): number | typeof NONE {
  return text === NONE ? NONE : DURATION.parse(text);
}
