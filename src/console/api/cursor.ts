import { refusedInput } from './refusals.ts';

/** Where a page of a list ends that is ordered by time and then by id. */
interface Place {
  readonly time_ms: number;
  readonly id: string;
}

/** The text that asks for the page after a place. */
export function cursorAt({ time_ms, id }: Place): string {
  return `${time_ms}.${id}`;
}

/** The place that such a text means. Refuses with `message` what is none. */
export function placeOf(cursor: string, message: string): Place {
  const [time, id] = cursor.split('.');
  const time_ms = Number(time);
  if (!Number.isSafeInteger(time_ms) || id === undefined) throw refusedInput('after', message);
  return { time_ms, id };
}
