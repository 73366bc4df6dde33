import { refusedInput } from './refusals.ts';

/** The end of a page of a list that is ordered by time and then by id. */
interface Place {
  readonly time_ms: number;
  readonly id: string;
}

/** Returns the cursor of the page after a place. */
export function cursorAt({ time_ms, id }: Place): string {
  return `${time_ms}.${id}`;
}

/** Parses a cursor. Refuses any other text with `message`. */
export function placeOf(cursor: string, message: string): Place {
  const [time, id] = cursor.split('.');
  const time_ms = Number(time);
  if (!Number.isSafeInteger(time_ms) || id === undefined) throw refusedInput('after', message);
  return { time_ms, id };
}
