import type { DecoderSize } from '../../native/engine.ts';

/** Beyond this number, organizations without waiting pieces are forgotten, with any lead that they had. */
const REMEMBERED_MAX = 1_000;

/** A waiting piece of work. */
export interface Waiting<Piece> {
  readonly organization_id: string;
  readonly decoder: DecoderSize;
  readonly tokens: number;
  readonly piece: Piece;
}

/** The waiting pieces of one organization, with its share so far. */
interface Flow<Piece> {
  /** The start of its next piece on the common scale of tokens. */
  level_tokens: number;
  /**
   * True for an organization that has been served nothing since it began to wait and was not ahead then. It
   * goes first among equals.
   */
  is_new: boolean;
  waiting_tokens: number;
  /** Pieces by decoder, oldest first; `order` compares pieces of different decoders. */
  readonly small: Map<Waiting<Piece>, number>;
  readonly large: Map<Waiting<Piece>, number>;
}

/**
 * Chooses the next piece: that of the organization with the fewest tokens served since it began to wait. Of
 * two waiting organizations, neither gets more than one piece ahead. A newcomer is next, because no other
 * that waits has been served less. This is start-time fair queueing: it gives the shares of deficit
 * round-robin, but a newcomer does not wait for a round. Pure: it knows neither time nor work.
 */
export class FairQueue<Piece> {
  readonly #flows = new Map<string, Flow<Piece>>();
  /** The start of the piece that was served last, at which organizations begin to wait. */
  #level_tokens = 0;
  #order = 0;

  /** Adds a piece to the end of the organization's own. */
  add(organization_id: string, decoder: DecoderSize, tokens: number, piece: Piece): Waiting<Piece> {
    const flow = this.#flowOf(organization_id);
    if (isEmpty(flow)) {
      flow.is_new = flow.level_tokens <= this.#level_tokens;
      flow.level_tokens = Math.max(flow.level_tokens, this.#level_tokens);
    }
    const waiting = { organization_id, decoder, tokens, piece };
    flow[decoder].set(waiting, this.#order++);
    flow.waiting_tokens += tokens;
    return waiting;
  }

  /** Removes a piece without serving it; an unknown one changes nothing. */
  remove(waiting: Waiting<Piece>): void {
    const flow = this.#flows.get(waiting.organization_id);
    if (flow?.[waiting.decoder].delete(waiting) === true) flow.waiting_tokens -= waiting.tokens;
  }

  /**
   * Takes the next piece of a decoder that has room; undefined for none. While the large decoder is full,
   * small pieces pass the large ones that wait for it. A large piece never passes a small one whose
   * organization is due first.
   */
  take(hasRoom: (decoder: DecoderSize) => boolean): Waiting<Piece> | undefined {
    const room = { small: hasRoom('small'), large: hasRoom('large') };
    let due: Flow<Piece> | undefined;
    for (const [organization_id, flow] of this.#flows) {
      if (isEmpty(flow)) {
        const is_behind = flow.level_tokens <= this.#level_tokens;
        if (is_behind || this.#flows.size > REMEMBERED_MAX) this.#flows.delete(organization_id);
        continue;
      }
      if (flow.small.size === 0 && !room.large) continue;
      if (due === undefined || isDueBefore(flow, due)) due = flow;
    }
    if (due === undefined) return undefined;
    const next = oldest(room.small ? due.small : undefined, room.large ? due.large : undefined);
    if (next === undefined) return undefined;
    this.#level_tokens = due.level_tokens;
    due.level_tokens += next.tokens;
    due.is_new = false;
    this.remove(next);
    return next;
  }

  /** Returns the tokens of an organization's waiting pieces. */
  waitingTokens(organization_id: string): number {
    return this.#flows.get(organization_id)?.waiting_tokens ?? 0;
  }

  /** Returns the number of waiting pieces. */
  waitingPieces(): number {
    let count = 0;
    for (const { small, large } of this.#flows.values()) count += small.size + large.size;
    return count;
  }

  /** Returns the number of waiting organizations. */
  waitingOrganizations(): number {
    let count = 0;
    for (const flow of this.#flows.values()) if (!isEmpty(flow)) count += 1;
    return count;
  }

  #flowOf(organization_id: string): Flow<Piece> {
    const existing = this.#flows.get(organization_id);
    if (existing !== undefined) return existing;
    const created = { level_tokens: 0, is_new: true, waiting_tokens: 0, small: new Map(), large: new Map() };
    this.#flows.set(organization_id, created);
    return created;
  }
}

function isEmpty<Piece>(flow: Flow<Piece>): boolean {
  return flow.small.size === 0 && flow.large.size === 0;
}

function isDueBefore<Piece>(flow: Flow<Piece>, other: Flow<Piece>): boolean {
  if (flow.level_tokens !== other.level_tokens) return flow.level_tokens < other.level_tokens;
  return flow.is_new && !other.is_new;
}

/** Returns the older one of the oldest pieces of both decoders. */
function oldest<Piece>(
  small: ReadonlyMap<Waiting<Piece>, number> | undefined,
  large: ReadonlyMap<Waiting<Piece>, number> | undefined,
): Waiting<Piece> | undefined {
  const [first_small] = small ?? [];
  const [first_large] = large ?? [];
  if (first_small === undefined || first_large === undefined) return (first_small ?? first_large)?.[0];
  return first_small[1] < first_large[1] ? first_small[0] : first_large[0];
}
