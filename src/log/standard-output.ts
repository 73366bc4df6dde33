/** The most bytes that wait to be written: some thousand log lines. */
const BUFFER_BYTES_MAX = 1_048_576;
/** The most bytes of one write: as much as a pipe holds. */
const WRITE_BYTES_MAX = 65_536;
/** The delay after a failed write, as on a full disk. */
const RETRY_MS = 1_000;

/**
 * The destination of lines: a stream, or a file. It gets one text at a time, and reports the result of each.
 */
export interface TextSink {
  write(text: string, done: (error?: Error | null) => void): unknown;
  /** Streams report a failed write here as well. */
  on?(event: 'error', listener: () => void): unknown;
}

interface Line {
  readonly text: string;
  readonly bytes: number;
}

/**
 * Writes lines to a stream or file that may be full, closed at its other end, or unread. It never throws or
 * waits: lines wait in a bounded buffer, and those beyond it are lost and counted.
 */
export class BoundedOutput {
  /** Called with the number of lost lines, once a write has succeeded again. */
  onResumed: (lines_lost: number) => void = () => {};
  #waiting: Line[] = [];
  /** The bytes of the lines that wait or are being written. */
  #bytes = 0;
  #lines_lost = 0;
  #is_writing = false;
  #is_listening = false;
  #retry: Timer | undefined;
  /** Set by a flush; from then on there is no retry of a failed write. */
  #flushed: (() => void) | undefined;

  constructor(
    private readonly sink: TextSink,
    private readonly bytes_max: number = BUFFER_BYTES_MAX,
  ) {}

  /** True if the other end does not accept a write in progress. Such a write keeps the process alive. */
  get isStuck(): boolean {
    return this.#is_writing;
  }

  /** True if anything was written here; then a write failure is no reason to end. */
  get isUsed(): boolean {
    return this.#is_listening;
  }

  /** Writes the text, which ends in a line break, as soon as possible. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (this.#bytes + bytes > this.bytes_max) {
      this.#lines_lost += 1;
      return;
    }
    this.#bytes += bytes;
    this.#waiting.push({ text, bytes });
    this.#writeNext();
  }

  /** Resolves when nothing waits any more, written or lost, and at the latest after `deadline_ms`. */
  async flush(deadline_ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#flushed = resolve;
    const deadline = setTimeout(resolve, deadline_ms);
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#writeNext();
    await promise;
    clearTimeout(deadline);
    this.#flushed = undefined;
  }

  #writeNext(): void {
    if (this.#is_writing || this.#retry !== undefined) return;
    if (this.#waiting.length === 0) {
      this.#flushed?.();
      return;
    }
    if (!this.#is_listening) {
      this.#is_listening = true;
      // The callback also gets every failed write. Without a listener the error would end the process.
      this.sink.on?.('error', () => {});
    }
    const lines = this.#takeLines();
    this.#is_writing = true;
    this.sink.write(lines.map(({ text }) => text).join(''), (error) => this.#wrote(lines, error ?? null));
  }

  #wrote(lines: readonly Line[], error: Error | null): void {
    this.#is_writing = false;
    for (const { bytes } of lines) this.#bytes -= bytes;
    if (error !== null) {
      // A part of them may have been written, so a retry could double lines.
      this.#lines_lost += lines.length;
      if (this.#flushed === undefined) this.#retryLater();
    } else if (this.#lines_lost > 0) {
      const lost = this.#lines_lost;
      this.#lines_lost = 0;
      this.onResumed(lost);
      // If the report of lost lines did not fit, it follows the next write, and is not counted itself.
      if (this.#lines_lost > 0) this.#lines_lost = lost;
    }
    this.#writeNext();
  }

  #retryLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#writeNext();
    }, RETRY_MS);
    this.#retry.unref();
  }

  /** Returns the oldest lines, at least one and at most `WRITE_BYTES_MAX` bytes. */
  #takeLines(): readonly Line[] {
    let bytes = this.#waiting[0]?.bytes ?? 0;
    let count = 1;
    for (; count < this.#waiting.length; count += 1) {
      bytes += this.#waiting[count]?.bytes ?? 0;
      if (bytes > WRITE_BYTES_MAX) break;
    }
    return this.#waiting.splice(0, count);
  }
}

/** The standard output of a server: its announcement and its log. */
export const standardOutput = new BoundedOutput(process.stdout);
