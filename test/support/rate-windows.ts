import { PostgresRateWindows } from '../../db/postgres/rate-windows.ts';
import type { Clock } from '../../src/time/clock.ts';
import type { TestDatabase } from './postgres.ts';

/** The windows of one node of the database; they tell the given clock's time to the database, too. */
export function nodeWindows(database: TestDatabase, clock: Clock): PostgresRateWindows {
  return new PostgresRateWindows({
    connect: () => database.connect({ connections: 1 }),
    clock,
    onProblem: (error) => {
      throw error;
    },
    time_us: () => clock.monotonic_ms() * 1_000,
  });
}
