import type { Clock } from '../clock.ts';
import type { Identifiers } from '../identifiers.ts';
import type { Store } from '../store/store.ts';

/** The parts that every account service needs. */
export interface AccountContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
}
