import type { DecoderSize } from '../../native/engine.ts';

/** Organizations beyond so many are forgotten once nothing of theirs waits, with the turn that they are ahead. */
const REMEMBERED_MAX = 1_000;

/** A piece of work that waits. */
export interface Waiting<Piece> {
  readonly organization_id: string;
  readonly decoder: DecoderSize;
  readonly tokens: number;
  readonly piece: Piece;
}

/** What one organization has waiting, and how far it has been served. */
interface Flow<Piece> {
  /** Where its next piece starts on the common scale of tokens. */
  level_tokens: number;
  /** Whether it has had nothing since it began to wait, nor more than others before: among equals it is first. */
  is_new: boolean;
  waiting_tokens: number;
  /** By decoder, oldest first; `order` compares pieces of different decoders. */
  readonly small: Map<Waiting<Piece>, number>;
  readonly large: Map<Waiting<Piece>, number>;
}

/**
 * Who is served next: the organization that has had the fewest tokens since it began to wait. Of two organizations that
 * both wait, neither gets more than one piece ahead of the other. One that has just come is next, because no other that
 * waits has had less. This is start-time fair queueing: the shares of deficit round-robin, without a round in which a
 * newcomer waits for everybody's quantum. Pure: it knows neither time nor work.
 */
export class FairQueue<Piece> {
  readonly #flows = new Map<string, Flow<Piece>>();
  /** Where the piece that was taken last started: organizations that begin to wait start there. */
  #level_tokens = 0;
  #order = 0;

  /** Adds a piece behind the organization's own. */
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

  /** Takes a piece out without serving it; one that is not here changes nothing. */
  remove(waiting: Waiting<Piece>): void {
    const flow = this.#flows.get(waiting.organization_id);
    if (flow?.[waiting.decoder].delete(waiting) === true) flow.waiting_tokens -= waiting.tokens;
  }

  /**
   * The next piece, of a decoder that has room, or undefined. While the large decoder is full, small pieces pass the
   * large ones that wait for it. A large piece never passes a small one whose organization is due before.
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

  /** Tokens of an organization's waiting pieces. */
  waitingTokens(organization_id: string): number {
    return this.#flows.get(organization_id)?.waiting_tokens ?? 0;
  }

  /** How many pieces wait. */
  waitingPieces(): number {
    let count = 0;
    for (const { small, large } of this.#flows.values()) count += small.size + large.size;
    return count;
  }

  /** How many organizations wait. */
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

/** The older one of the oldest pieces of both decoders. */
function oldest<Piece>(
  small: ReadonlyMap<Waiting<Piece>, number> | undefined,
  large: ReadonlyMap<Waiting<Piece>, number> | undefined,
): Waiting<Piece> | undefined {
  const [first_small] = small ?? [];
  const [first_large] = large ?? [];
  if (first_small === undefined || first_large === undefined) return (first_small ?? first_large)?.[0];
  return first_small[1] < first_large[1] ? first_small[0] : first_large[0];
}
