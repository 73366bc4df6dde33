import type { Db } from '../../db/sqlite/connection.ts';
import type { Clock } from '../clock.ts';
import type { Identifiers } from '../identifiers.ts';

/** What every account service works with. */
export interface AccountContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
}
