import type { Db } from '../../db/sqlite/connection.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { type Identifiers, randomIdentifiers } from '../../src/contract/identifiers.ts';
import { type Clock, systemClock } from '../../src/time/clock.ts';

/** Returns the context of the account and credit services on a database. Make one for each connection. */
export function contextOn(db: Db, clock: Clock = systemClock, identifiers: Identifiers = randomIdentifiers) {
  return { store: new SqliteStore(db), clock, identifiers };
}
