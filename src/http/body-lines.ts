import { Refusal } from '../errors/errors.ts';
import { BODY_BYTES_MAX, BodyEndedEarly, BytePieces } from './body-bytes.ts';
import { type ContentCoding, decompressed } from './content-encoding.ts';

const NEWLINE = 0x0a;

/** One line of a body. */
export interface BodyLine {
  /** Which line of the body it is, from 1. */
  readonly number: number;
  /** Without the end of the line; null where the line is longer than a body may be. */
  readonly bytes: Uint8Array | null;
}

/** How the lines of a body are read. */
export interface LineReading {
  readonly coding: ContentCoding | null;
  /** How long a client may send nothing while it is waited for, in milliseconds. */
  readonly deadline_ms: number;
  /** Blank lines up to this number are skipped; one beyond it is given, so that no body of them is endless. */
  readonly lines_max: number;
  /** Is told of bytes of lines that are skipped or too long, and waited for, before more is read. */
  readonly onSkipped: (bytes: number) => Promise<void>;
  /** Ends the reading; what was begun of a line is dropped. */
  readonly signal: AbortSignal;
}

/** Returns true for a line that has nothing but space. */
export function isBlank({ bytes }: Pick<BodyLine, 'bytes'>): boolean {
  return bytes?.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d) ?? false;
}

/**
 * Yields the lines of a request's body as they are taken, but no blank ones. Nothing is read ahead but one piece of the
 * stream, and no given line is kept. A last line needs no end. Throws `request_timeout` when the client is silent for
 * too long. Throws `invalid_json` when it stopped sending, or its compression is damaged. Throws the refusals that the
 * body fails with.
 */
export async function* bodyLines(
  request: Request,
  { coding, deadline_ms, lines_max, onSkipped, signal }: LineReading,
): AsyncGenerator<BodyLine> {
  if (request.body === null) return;
  const sent = sentPieces(request.body, deadline_ms, signal);
  const pieces = coding === null ? sent : decompressed(sent, coding);
  let number = 1;
  let line = new BytePieces();
  let is_too_long = false;
  for await (const piece of pieces) {
    let blank_bytes = 0;
    for (let start = 0; start < piece.byteLength; ) {
      const newline = piece.indexOf(NEWLINE, start);
      // Lines of nothing cost a sender nothing, so each must cost next to nothing here.
      if (newline === start && line.size === 0 && !is_too_long && number <= lines_max) {
        number += 1;
        blank_bytes += 1;
        start += 1;
        continue;
      }
      const part = piece.subarray(start, newline < 0 ? piece.byteLength : newline);
      start += part.byteLength + 1;
      if (is_too_long) await onSkipped(part.byteLength);
      else if (line.size + part.byteLength <= BODY_BYTES_MAX) line.add(part);
      else {
        is_too_long = true;
        yield { number, bytes: null };
        await onSkipped(line.size + part.byteLength);
        line = new BytePieces();
      }
      if (newline < 0) continue;
      if (!is_too_long) {
        const read = { number, bytes: line.bytes() };
        if (number > lines_max || !isBlank(read)) yield read;
        else blank_bytes += read.bytes.byteLength + 1;
      }
      number += 1;
      line = new BytePieces();
      is_too_long = false;
    }
    if (blank_bytes > 0) await onSkipped(blank_bytes);
  }
  const last = { number, bytes: line.bytes() };
  if (!isBlank(last) && !signal.aborted) yield last;
}

/** Yields the bytes that the client sends, a piece at a time as they are taken. */
async function* sentPieces(
  body: ReadableStream<Uint8Array>,
  deadline_ms: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let is_late = false;
  // Nothing is lost: the body ends here, however its stream does.
  const end = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener('abort', end, { once: true });
  try {
    while (!signal.aborted) {
      const late = setTimeout(() => {
        is_late = true;
        end();
      }, deadline_ms);
      const { value, done } = await reader.read().finally(() => clearTimeout(late));
      if (is_late) throw new Refusal('request_timeout');
      if (done) return;
      yield value;
    }
  } catch (reason) {
    if (reason instanceof Refusal) throw reason;
    throw new BodyEndedEarly();
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}
