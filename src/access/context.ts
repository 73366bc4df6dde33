import type { Identifiers } from '../contract/identifiers.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';

/** The parts that every account service needs. */
export interface AccountContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
}
