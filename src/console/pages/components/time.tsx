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
  return (
    <time dateTime={new Date(time_ms).toISOString()} title={formatExact(time_ms, chosenZone())}>
      {formatRelative(time_ms, Date.now(), chosenZone())}
    </time>
  );
}
