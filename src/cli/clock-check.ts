import { DAY_MS } from '../clock.ts';
import { formatTime } from './output.ts';

/** The clock may be set back by so much without a word: time zones that were mistaken for UTC, tests, leap seconds. */
const TOLERANCE_MS = DAY_MS;

/**
 * One sentence about a clock that is far behind what is known to be past; null where it is not. `written_ms` is when
 * the database was last written, `made_ms` when this program's newest migration was made.
 *
 * It is a warning, because the money is right whatever the clock says. A refusal would stop every start after a clock
 * that was ahead once: its times are in the database.
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
