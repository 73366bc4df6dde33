/** The kind of an upstream's failure. */
export type UpstreamFailure =
  /** No connection. */
  | 'unreachable'
  /** The connection ended before an answer began. */
  | 'cut_off'
  /** No answer began in time. */
  | 'timed_out'
  /** It is overloaded, or its limits are reached. */
  | 'busy'
  /** It is loading its model. */
  | 'loading'
  /** Any other status than that of an answer. */
  | 'refused'
  /** It refuses this request, as any other member would. */
  | 'rejected'
  /** The answer broke off, is too long, or does not match the question. */
  | 'bad_answer';

/**
 * An upstream gave no answer. The message is a fixed sentence with an address, a number or a code of the
 * system. It quotes nothing of the upstream's response, which may repeat the record. For the same reason it
 * has no cause.
 */
export class UpstreamFailed extends Error {
  override readonly name = 'UpstreamFailed';
  constructor(
    readonly failure: UpstreamFailure,
    message: string,
    /** Whole seconds after which the upstream wants a retry; null where it gives none. */
    readonly retry_after_s: number | null = null,
    /** The HTTP status; null where there was none. */
    readonly status: number | null = null,
  ) {
    super(message);
  }

  /** The kind of failure in the form of the system's codes, by which the log tells problems apart. */
  get code(): string {
    return this.status === null ? this.failure.toUpperCase() : `STATUS_${this.status}`;
  }

  /** True if another member may be asked, because this one has not begun to answer. */
  get is_unanswered(): boolean {
    return this.failure !== 'bad_answer' && this.failure !== 'rejected';
  }

  /** True if it wants a token, or another one. */
  get is_token_refused(): boolean {
    return this.status === 401 || this.status === 403;
  }

  /** True if it limits requests, because of its load or by a limit of the key or account that it is asked with. */
  get is_limited(): boolean {
    return this.status === 429;
  }

  /** True if the member is at fault, and not its load or the request. */
  get is_fault(): boolean {
    return this.failure !== 'busy' && this.failure !== 'loading' && this.failure !== 'rejected';
  }
}
