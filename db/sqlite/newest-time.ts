import type { Database } from 'bun:sqlite';
import { lastWriter } from './program-versions.ts';

/** Returns the time of the newest movement of credit; null for none. */
export function newestEntry_ms(client: Database): number | null {
  return (
    client
      .query<{ created_at_ms: number }, []>(
        'SELECT created_at_ms FROM ledger_entries ORDER BY id DESC LIMIT 1',
      )
      .get()?.created_at_ms ?? null
  );
}

/** Returns the newest time of the database's rows, before which the clock cannot be; null for a new database. */
export function lastWritten_ms(client: Database): number | null {
  const times = [newestEntry_ms(client), lastWriter(client)?.last_ms ?? null].filter((time) => time !== null);
  return times.length === 0 ? null : Math.max(...times);
}
