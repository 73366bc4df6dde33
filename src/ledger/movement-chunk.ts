import { endOfDay_ms } from '../time/days.ts';
import type { Movement } from './movement-lines.ts';

/** The movements of one read: at most `limit` before an entry, newest first. */
export interface MovementChunk {
  readonly organization_id: string;
  readonly before_entry_id: number;
  readonly limit: number;
}

/** The rolled-up charges of a project on one UTC day. */
export interface ChargedDay {
  readonly day: string;
  /** The entry of the last charge. */
  readonly entry_id: number;
  readonly charges: number;
  readonly charged_micros: number;
  readonly project_id: string;
}

/** Returns the movements of a chunk, newest first, from its entries and its days. */
export function movementsOf(
  { limit }: Pick<MovementChunk, 'limit'>,
  entries: readonly Movement[],
  days: readonly ChargedDay[],
): Movement[] {
  return [...entries, ...days.map(movementOfDay)]
    .sort((left, right) => right.entry_id - left.entry_id)
    .slice(0, limit);
}

function movementOfDay({ day, charged_micros, ...rolled_up }: ChargedDay): Movement {
  return {
    ...rolled_up,
    kind: 'charges',
    at_ms: endOfDay_ms(day),
    amount_micros: -charged_micros,
    request_id: null,
    payment_id: null,
    provider: null,
    refunds_payment_id: null,
  };
}
