import { signal } from '@preact/signals';

export const TIME_ZONES = ['local', 'utc'] as const;
export type TimeZoneChoice = (typeof TIME_ZONES)[number];

const STORED_AS = 'tds-time-zone';

/** In which zone the pages tell times; kept in this browser. */
export const time_zone = signal<TimeZoneChoice>(storedZone());

/** Takes another zone, and keeps it. */
export function chooseTimeZone(chosen: TimeZoneChoice): void {
  time_zone.value = chosen;
  try {
    localStorage.setItem(STORED_AS, chosen);
  } catch {
    // A browser that stores nothing forgets the choice at the next visit.
  }
}

/** The zone as `Intl` takes it; undefined for the reader's own. */
export function chosenZone(): 'UTC' | undefined {
  return time_zone.value === 'utc' ? 'UTC' : undefined;
}

function storedZone(): TimeZoneChoice {
  try {
    return localStorage.getItem(STORED_AS) === 'utc' ? 'utc' : 'local';
  } catch {
    return 'local';
  }
}
