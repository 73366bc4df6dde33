import { DAY_MS, HOUR_MS } from '../../../time/clock.ts';
import { Select } from '../components/field.tsx';
import type { FormValues } from '../components/form.tsx';
import { TimeText } from '../components/time.tsx';
import type { Key } from './key-columns.tsx';

const LIFETIMES = [
  { value: '0', label: 'Never' },
  { value: String(7 * DAY_MS), label: 'In 7 days' },
  { value: String(30 * DAY_MS), label: 'In 30 days' },
  { value: String(90 * DAY_MS), label: 'In 90 days' },
  { value: String(365 * DAY_MS), label: 'In a year' },
] as const;

/** The value of no other lifetime. */
const UNCHANGED = 'unchanged';

/** A rotation in which the old key ends at once. */
export const NO_OVERLAP = { value: '0', label: 'Not at all: revoke it now' } as const;

/** The times for which both keys of a rotation work. */
export const OVERLAPS = [
  { value: String(DAY_MS), label: '1 day' },
  { value: String(HOUR_MS), label: '1 hour' },
  { value: String(7 * DAY_MS), label: '7 days' },
  NO_OVERLAP,
] as const;

interface LifetimeFieldProps {
  readonly label?: string;
  /** Chosen before anything else is: the other choices would change the expiry unasked. */
  readonly first?: { readonly value: string; readonly label: string } | undefined;
}

/** The field for the lifetime of a key, from now on. The service's clock counts, whatever the browser's says. */
export function LifetimeField({ label = 'Expires', first }: LifetimeFieldProps) {
  return (
    <Select
      label={label}
      name="lifetime_ms"
      options={first === undefined ? LIFETIMES : [first, ...LIFETIMES]}
      help="A key that has expired is refused."
    />
  );
}

/** The choice that leaves the expiry of a key as it is; undefined for a key that never expires. */
export function presentExpiry({ expires_at_ms }: Pick<Key, 'expires_at_ms'>) {
  if (expires_at_ms === null) return undefined;
  return { value: UNCHANGED, label: `As it is: ${expiryText(expires_at_ms).toLowerCase()}` };
}

/** The choice of as long as from a key's creation to its end; undefined for a key that never expires. */
export function sameLifetime({ created_at_ms, expires_at_ms }: Pick<Key, 'created_at_ms' | 'expires_at_ms'>) {
  if (expires_at_ms === null) return undefined;
  const lifetime_ms = expires_at_ms - created_at_ms;
  return { value: String(lifetime_ms), label: `${inShort(lifetime_ms)}, as long as the old key had` };
}

/** Returns the lifetime that was chosen in a form; null for a key that never expires. */
export function lifetimeIn(values: FormValues): number | null {
  return Number(values.exact('lifetime_ms')) || null;
}

/** Returns true if the expiry was left as it is. */
export function keepsExpiry(values: FormValues): boolean {
  return values.exact('lifetime_ms') === UNCHANGED;
}

/** The time at which a key expires, in as many words as a table has room for. */
export function Expiry({ expires_at_ms }: { readonly expires_at_ms: number | null }) {
  if (expires_at_ms === null) return <>Never</>;
  return <TimeText time_ms={expires_at_ms}>{expiryText(expires_at_ms)}</TimeText>;
}

function expiryText(expires_at_ms: number): string {
  const left_ms = expires_at_ms - Date.now();
  return left_ms <= 0 ? 'Expired' : inShort(left_ms);
}

function inShort(left_ms: number): string {
  return left_ms < DAY_MS ? `In ${Math.ceil(left_ms / HOUR_MS)} h` : `In ${Math.round(left_ms / DAY_MS)} d`;
}

/** True for a key that is refused because of its expiry. */
export function isExpired({ expires_at_ms }: { readonly expires_at_ms: number | null }): boolean {
  return expires_at_ms !== null && expires_at_ms <= Date.now();
}

/** Returns how many of these keys still work. */
export function countActive(keys: readonly { readonly expires_at_ms: number | null }[]): number {
  return keys.filter((key) => !isExpired(key)).length;
}
