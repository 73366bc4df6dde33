/** What waits to be written at most, in bytes: some thousand log lines. */
const BUFFER_BYTES_MAX = 1_048_576;
/** What is handed to the system at a time: as much as a pipe holds. */
const WRITE_BYTES_MAX = 65_536;
/** How long nothing is tried after a write failed, as on a full disk. */
const RETRY_MS = 1_000;

/** Where lines go: a stream, or a file. It is given one text at a time, and tells how each one went. */
export interface TextSink {
  write(text: string, done: (error?: Error | null) => void): unknown;
  /** Streams tell a failed write here as well. */
  on?(event: 'error', listener: () => void): unknown;
}

interface Line {
  readonly text: string;
  readonly bytes: number;
}

/**
 * Lines on their way to a stream or file that may be full, closed at its other end, or read by nobody. Nothing here
 * throws or waits: what cannot be written waits in a bounded buffer, and what does not fit is lost and counted.
 */
export class BoundedOutput {
  /** Is told, once a write has succeeded again, how many lines were lost before. */
  onResumed: (lines_lost: number) => void = () => {};
  readonly #sink: TextSink;
  readonly #bytes_max: number;
  #waiting: Line[] = [];
  /** Bytes of the lines that wait and of those that are being written. */
  #bytes = 0;
  #lines_lost = 0;
  #is_writing = false;
  #is_listening = false;
  #retry: Timer | undefined;
  /** Set by a flush: from then on a failed write is not waited after. */
  #flushed: (() => void) | undefined;

  constructor(sink: TextSink, bytes_max: number = BUFFER_BYTES_MAX) {
    this.#sink = sink;
    this.#bytes_max = bytes_max;
  }

  /** Whether a write has begun that the other end does not take. Such a write keeps the process alive. */
  get isStuck(): boolean {
    return this.#is_writing;
  }

  /** Whether anything was written here: what cannot be written is then no reason to end. */
  get isUsed(): boolean {
    return this.#is_listening;
  }

  /** Writes the text, which ends in a line break, as soon as it can be written. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (this.#bytes + bytes > this.#bytes_max) {
      this.#lines_lost += 1;
      return;
    }
    this.#bytes += bytes;
    this.#waiting.push({ text, bytes });
    this.#writeNext();
  }

  /** Resolves when nothing waits any more, written or lost, and after `deadline_ms` whatever still waits. */
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
      // Every failed write is told to its callback too; without a listener it would end the process.
      this.#sink.on?.('error', () => {});
    }
    const lines = this.#takeLines();
    this.#is_writing = true;
    this.#sink.write(lines.map(({ text }) => text).join(''), (error) => this.#wrote(lines, error ?? null));
  }

  #wrote(lines: readonly Line[], error: Error | null): void {
    this.#is_writing = false;
    for (const { bytes } of lines) this.#bytes -= bytes;
    if (error !== null) {
      // A part of them may have been written, so that writing them again could double lines.
      this.#lines_lost += lines.length;
      if (this.#flushed === undefined) this.#retryLater();
    } else if (this.#lines_lost > 0) {
      const lost = this.#lines_lost;
      this.#lines_lost = 0;
      this.onResumed(lost);
      // The line that tells it did not fit: it is told after the next write instead, and not counted itself.
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

  /** The oldest lines, at least one and at most `WRITE_BYTES_MAX` of them. */
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

/** Standard output of a server: its announcement and its log. */
export const standardOutput = new BoundedOutput(process.stdout);
