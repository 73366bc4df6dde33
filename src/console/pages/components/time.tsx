import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { MINUTE_MS } from '../../../time/clock.ts';
import { formatExact, formatRelative } from '../format.ts';
import { chosenZone } from '../time-zone.ts';

/** The last full minute since the page was opened: relative times are told anew with it. */
const minute_ms = signal(Date.now());
setInterval(() => {
  minute_ms.value = Date.now();
}, MINUTE_MS);

/** A relative time, with the exact one as its title. */
export function Time({
  time_ms,
  none = 'Never',
}: {
  readonly time_ms: number | null;
  readonly none?: string;
}) {
  if (time_ms === null) return <span class="muted">{none}</span>;
  // The signal is read for its changes: the clock is ahead of it.
  const now_ms = Math.max(minute_ms.value, Date.now());
  return <TimeText time_ms={time_ms}>{formatRelative(time_ms, now_ms, chosenZone())}</TimeText>;
}

/** A text for a time, with the exact one as its title. */
export function TimeText({
  time_ms,
  children,
}: {
  readonly time_ms: number;
  readonly children: ComponentChildren;
}) {
  return (
    <time dateTime={new Date(time_ms).toISOString()} title={formatExact(time_ms, chosenZone())}>
      {children}
    </time>
  );
}
