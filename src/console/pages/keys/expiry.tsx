import { DAY_MS, HOUR_MS } from '../../../time/clock.ts';
import { Select } from '../components/field.tsx';
import { TimeText } from '../components/time.tsx';

const LIFETIMES = [
  { value: '0', label: 'Never' },
  { value: String(7 * DAY_MS), label: 'In 7 days' },
  { value: String(30 * DAY_MS), label: 'In 30 days' },
  { value: String(90 * DAY_MS), label: 'In 90 days' },
  { value: String(365 * DAY_MS), label: 'In a year' },
] as const;

/** A rotation in which the old key ends at once. */
export const NO_OVERLAP = { value: '0', label: 'Not at all: revoke it now' } as const;

/** The times for which both keys of a rotation work. */
export const OVERLAPS = [
  { value: String(DAY_MS), label: '1 day' },
  { value: String(HOUR_MS), label: '1 hour' },
  { value: String(7 * DAY_MS), label: '7 days' },
  NO_OVERLAP,
] as const;

/** The field for the lifetime of a key, from now on. */
export function LifetimeField() {
  return <Select label="Expires" name="lifetime" options={LIFETIMES} help="The key stops working then." />;
}

/** Returns the time at which a key with that lifetime expires; null for never. */
export function expiryOf(lifetime: string): number | null {
  const lifetime_ms = Number(lifetime);
  return lifetime_ms === 0 ? null : Date.now() + lifetime_ms;
}

/** The time at which a key expires, in as many words as a table has room for. */
export function Expiry({ expires_at_ms }: { readonly expires_at_ms: number | null }) {
  if (expires_at_ms === null) return <>Never</>;
  const left_ms = expires_at_ms - Date.now();
  const text =
    left_ms <= 0
      ? 'Expired'
      : left_ms < DAY_MS
        ? `In ${Math.ceil(left_ms / HOUR_MS)} h`
        : `In ${Math.round(left_ms / DAY_MS)} d`;
  return <TimeText time_ms={expires_at_ms}>{text}</TimeText>;
}

/** True for a key that is refused because of its expiry. */
export function isExpired({ expires_at_ms }: { readonly expires_at_ms: number | null }): boolean {
  return expires_at_ms !== null && expires_at_ms <= Date.now();
}

/** Returns how many of these keys still work. */
export function countActive(keys: readonly { readonly expires_at_ms: number | null }[]): number {
  return keys.filter((key) => !isExpired(key)).length;
}
