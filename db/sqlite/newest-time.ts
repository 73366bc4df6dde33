import type { Database } from 'bun:sqlite';
import { lastWriter } from './program-versions.ts';

/** The time of the newest movement of credit; null for none. */
export function newestEntry_ms(client: Database): number | null {
  return (
    client
      .query<{ created_at_ms: number }, []>(
        'SELECT created_at_ms FROM ledger_entries ORDER BY id DESC LIMIT 1',
      )
      .get()?.created_at_ms ?? null
  );
}

/** When the database was last written, as far as it says: the clock cannot be behind that. Null for a new one. */
export function lastWritten_ms(client: Database): number | null {
  const times = [newestEntry_ms(client), lastWriter(client)?.last_ms ?? null].filter((time) => time !== null);
  return times.length === 0 ? null : Math.max(...times);
}
