import { DAY_MS } from '../time/clock.ts';
import { formatTime } from './output.ts';

/**
 * The amount by which the clock may be set back without a warning: time zones mistaken for UTC, tests, leap
 * seconds.
 */
const TOLERANCE_MS = DAY_MS;

/**
 * Returns one sentence about a clock that is far behind a time known to be past, or null. `written_ms` is the
 * last write of the database, `made_ms` the date of this program's newest migration.
 *
 * It is only a warning, because money does not depend on the clock. After a clock that was once ahead, its
 * times are in the database, and a refusal would stop every start.
 */
export function clockWarning(
  now_ms: number,
  past: { readonly written_ms: number | null; readonly made_ms: number },
): string | null {
  const { written_ms, made_ms } = past;
  if (written_ms !== null && now_ms < written_ms - TOLERANCE_MS)
    return sentence(now_ms, `the database was written at ${formatTime(written_ms)}`);
  return now_ms < made_ms - TOLERANCE_MS
    ? sentence(now_ms, `this program is of ${formatTime(made_ms)}`)
    : null;
}

function sentence(now_ms: number, past: string): string {
  return `The clock says ${formatTime(now_ms)}, but ${past}: set the clock, or requests are booked into the wrong day and month.`;
}
