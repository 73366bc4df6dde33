/** What went wrong at an upstream. */
export type UpstreamFailure =
  /** No connection, or it ended before an answer began. */
  | 'unreachable'
  /** No answer began in time. */
  | 'timed_out'
  /** It has too much to do, or its limits are reached. */
  | 'busy'
  /** It is loading its model. */
  | 'loading'
  /** Any other status than that of an answer. */
  | 'refused'
  /** It does not take this request, and so no other member would. */
  | 'rejected'
  /** The answer broke off, is too long, or is not what was asked for. */
  | 'bad_answer';

/**
 * An upstream gave no answer. The message is a fixed sentence with an address, a number or a code of the system. It has
 * no word of what the upstream sent, which may repeat the record. For the same reason it has no cause.
 */
export class UpstreamFailed extends Error {
  override readonly name = 'UpstreamFailed';
  constructor(
    readonly failure: UpstreamFailure,
    message: string,
    /** Whole seconds after which it asks to be asked again; null where it says nothing. */
    readonly retry_after_s: number | null = null,
    /** Of HTTP; null where there was none. */
    readonly status: number | null = null,
  ) {
    super(message);
  }

  /** Whether another member may be asked: this one has not begun to answer. */
  get is_unanswered(): boolean {
    return this.failure !== 'bad_answer' && this.failure !== 'rejected';
  }

  /** Whether it wants a token, or another one. */
  get is_token_refused(): boolean {
    return this.status === 401 || this.status === 403;
  }

  /** Whether it speaks against the member, and not of its load or of the request. */
  get is_fault(): boolean {
    return this.failure !== 'busy' && this.failure !== 'loading' && this.failure !== 'rejected';
  }
}
