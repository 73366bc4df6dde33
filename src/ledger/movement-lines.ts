import type {
  MovementLine,
  MovementPage,
  MovementPlace,
  MovementQuestion,
} from '../store/movement-reader.ts';
import { dayOf } from '../time/days.ts';

/** A movement of credit without its balance. */
export type Movement = Omit<MovementLine, 'balance_micros'>;

/** The line in progress, with its oldest entry. */
interface Line extends Movement {
  readonly oldest_entry_id: number;
}

/** Makes a page of lines from the movements before a place, given newest first. */
export class MovementLines {
  readonly #charges_by: MovementQuestion['charges_by'];
  readonly #limit: number;
  readonly #items: MovementLine[] = [];
  /** The start of the line in progress, with its balance. */
  #place: MovementPlace;
  #line: Line | undefined;

  constructor({ charges_by, limit }: Pick<MovementQuestion, 'charges_by' | 'limit'>, place: MovementPlace) {
    this.#charges_by = charges_by;
    this.#limit = limit;
    this.#place = place;
  }

  /**
   * Adds the next movement; returns false for the first that belongs to the next page. By day, charges of one
   * UTC day join.
   */
  add(movement: Movement): boolean {
    if (this.#line !== undefined && this.#charges_by === 'day' && isSameDay(this.#line, movement)) {
      this.#line = joined(this.#line, movement);
      return true;
    }
    this.#end();
    if (this.#items.length === this.#limit) return false;
    this.#line = { ...movement, oldest_entry_id: movement.entry_id };
    return true;
  }

  /** Returns the page; `isLast` if no movements follow. */
  page(isLast: boolean): MovementPage {
    this.#end();
    return { items: this.#items, next: isLast ? null : this.#place };
  }

  #end(): void {
    if (this.#line === undefined) return;
    const { oldest_entry_id, ...line } = this.#line;
    const { balance_micros } = this.#place;
    this.#items.push({ ...line, balance_micros });
    this.#place = { entry_id: oldest_entry_id, balance_micros: balance_micros - line.amount_micros };
    this.#line = undefined;
  }
}

function isSameDay(line: Movement, movement: Movement): boolean {
  return line.charges > 0 && movement.charges > 0 && dayOf(line.at_ms) === dayOf(movement.at_ms);
}

function joined(line: Line, movement: Movement): Line {
  return {
    ...line,
    kind: 'charges',
    amount_micros: line.amount_micros + movement.amount_micros,
    charges: line.charges + movement.charges,
    project_id: line.project_id === movement.project_id ? line.project_id : null,
    request_id: null,
    oldest_entry_id: movement.entry_id,
  };
}
