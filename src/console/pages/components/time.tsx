import type { ComponentChildren } from 'preact';
import { formatExact, formatRelative } from '../format.ts';
import { chosenZone } from '../time-zone.ts';

/** A relative time, with the exact one as its title. */
export function Time({
  time_ms,
  none = 'Never',
}: {
  readonly time_ms: number | null;
  readonly none?: string;
}) {
  if (time_ms === null) return <span class="muted">{none}</span>;
  return <TimeText time_ms={time_ms}>{formatRelative(time_ms, Date.now(), chosenZone())}</TimeText>;
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
