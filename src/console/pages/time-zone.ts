import { signal } from '@preact/signals';
import { store, stored } from './browser-storage.ts';

export const TIME_ZONES = ['local', 'utc'] as const;
export type TimeZoneChoice = (typeof TIME_ZONES)[number];

const STORED_AS = 'tds-time-zone';

/** In which zone the pages tell times; kept in this browser. */
export const time_zone = signal<TimeZoneChoice>(stored(STORED_AS) === 'utc' ? 'utc' : 'local');

/** Takes another zone, and keeps it. */
export function chooseTimeZone(chosen: TimeZoneChoice): void {
  time_zone.value = chosen;
  store(STORED_AS, chosen);
}

/** The zone as `Intl` takes it; undefined for the reader's own. */
export function chosenZone(): 'UTC' | undefined {
  return time_zone.value === 'utc' ? 'UTC' : undefined;
}
