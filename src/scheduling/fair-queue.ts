import type { DecoderSize } from '../../native/engine.ts';

/** Beyond this number, flows without waiting pieces are forgotten, with any lead that they had. */
const REMEMBERED_MAX = 1_000;

/** A waiting piece of work. */
export interface Waiting<Piece> {
  /** The name of its flow. */
  readonly flow: string;
  readonly decoder: DecoderSize;
  readonly tokens: number;
  readonly piece: Piece;
}

/** The waiting pieces of one organization, or of its batches, with their share so far. */
interface Flow<Piece> {
  /** The start of its next piece on the common scale of tokens. */
  level_tokens: number;
  /**
   * True for a flow that has been served nothing since it began to wait and was not ahead then. It goes first
   * among equals.
   */
  is_new: boolean;
  waiting_tokens: number;
  /** Pieces by decoder, oldest first; `order` compares pieces of different decoders. */
  readonly small: Map<Waiting<Piece>, number>;
  readonly large: Map<Waiting<Piece>, number>;
}

/**
 * Chooses the next piece: that of the flow with the fewest tokens served since it began to wait. Of two
 * waiting flows, neither gets more than one piece ahead. A newcomer is next, unless one
 * waits that had no room. This is start-time fair queueing: it gives the shares of deficit
 * round-robin, but a newcomer does not wait for a round. Pure: it knows neither time nor work.
 */
export class FairQueue<Piece> {
  readonly #flows = new Map<string, Flow<Piece>>();
  /** The latest start of a piece that was served, at which flows begin to wait. */
  #level_tokens = 0;
  #order = 0;

  /** Adds a piece to the end of the flow of that name. */
  add(flow: string, decoder: DecoderSize, tokens: number, piece: Piece): Waiting<Piece> {
    const own = this.#flowOf(flow);
    if (isEmpty(own)) {
      own.is_new = own.level_tokens <= this.#level_tokens;
      own.level_tokens = Math.max(own.level_tokens, this.#level_tokens);
    }
    const waiting = { flow, decoder, tokens, piece };
    own[decoder].set(waiting, this.#order++);
    own.waiting_tokens += tokens;
    return waiting;
  }

  /** Removes a piece without serving it; an unknown one changes nothing. */
  remove(waiting: Waiting<Piece>): void {
    const own = this.#flows.get(waiting.flow);
    if (own?.[waiting.decoder].delete(waiting) === true) own.waiting_tokens -= waiting.tokens;
  }

  /**
   * Takes the next piece of a decoder that has room; undefined for none. While the large decoder is full,
   * small pieces pass the large ones that wait for it. A large piece never passes a small one whose flow is due
   * first.
   */
  take(hasRoom: (decoder: DecoderSize) => boolean): Waiting<Piece> | undefined {
    const room = { small: hasRoom('small'), large: hasRoom('large') };
    let due: Flow<Piece> | undefined;
    for (const [name, flow] of this.#flows) {
      if (isEmpty(flow)) {
        const is_behind = flow.level_tokens <= this.#level_tokens;
        if (is_behind || this.#flows.size > REMEMBERED_MAX) this.#flows.delete(name);
        continue;
      }
      if (flow.small.size === 0 && !room.large) continue;
      if (due === undefined || isDueBefore(flow, due)) due = flow;
    }
    if (due === undefined) return undefined;
    const next = oldest(room.small ? due.small : undefined, room.large ? due.large : undefined);
    if (next === undefined) return undefined;
    // A flow whose large pieces had no room is served late, and newcomers do not begin where it waited.
    this.#level_tokens = Math.max(this.#level_tokens, due.level_tokens);
    due.level_tokens += next.tokens;
    due.is_new = false;
    this.remove(next);
    return next;
  }

  /** Returns the tokens of a flow's waiting pieces. */
  waitingTokens(flow: string): number {
    return this.#flows.get(flow)?.waiting_tokens ?? 0;
  }

  /** Returns the number of waiting pieces. */
  waitingPieces(): number {
    let count = 0;
    for (const { small, large } of this.#flows.values()) count += small.size + large.size;
    return count;
  }

  #flowOf(name: string): Flow<Piece> {
    const existing = this.#flows.get(name);
    if (existing !== undefined) return existing;
    const created = { level_tokens: 0, is_new: true, waiting_tokens: 0, small: new Map(), large: new Map() };
    this.#flows.set(name, created);
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
