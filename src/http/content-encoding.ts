import { pipeline, type Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import { Refusal } from '../errors/errors.ts';
import { ZstdFrames } from './zstd-frames.ts';

/** The most bytes that a decoder produces before the total is checked. */
const PIECE = { chunkSize: 65_536 };

/**
 * The largest window that a sender may use, as RFC 9659 fixes it: a larger one would take that much memory at
 * once.
 */
const ZSTD_WINDOW_LOG_MAX = 23;

/** A decompressor that counts the bytes it has read. */
type Decoder = Transform & { readonly bytesWritten: number };

/** A compression of bodies. */
export interface ContentCoding {
  /** The format that the bytes must have, in the words of a refusal. */
  readonly format: string;
  /** Creates a decoder that works on another thread, a piece at a time. */
  readonly decoder: () => Decoder;
  /** Makes a reader that knows whether compressed bytes are whole, where the decoder does not tell. */
  readonly frames?: () => ZstdFrames;
}

const GZIP: ContentCoding = { format: 'gzip', decoder: () => createGunzip(PIECE) };

/** The codings by their names; `x-gzip` is the same as `gzip` (RFC 9110, 8.4.1.3). */
const CODINGS = new Map<string, ContentCoding | null>([
  ['identity', null],
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', { format: 'deflate', decoder: () => createInflate(PIECE) }],
  ['br', { format: 'br', decoder: () => createBrotliDecompress(PIECE) }],
  [
    'zstd',
    {
      format: 'zstd with a window of at most 8 MB',
      frames: () => new ZstdFrames(),
      decoder: () =>
        createZstdDecompress({
          ...PIECE,
          params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX },
        }),
    },
  ],
]);

/** The value of `Accept-Encoding` for clients that sent another coding. */
export const ACCEPTED_CODINGS = 'gzip, deflate, br, zstd';

/**
 * Returns the compression of a request's body; null for none. Refuses every other coding, and more than one.
 */
export function contentCodingOf(headers: Headers): ContentCoding | null | Refusal<'unsupported_encoding'> {
  const coding = CODINGS.get((headers.get('content-encoding') ?? 'identity').trim().toLowerCase());
  return coding === undefined ? new Refusal('unsupported_encoding') : coding;
}

/**
 * Decompresses bytes. `onPiece` gets each piece, and ends the work by returning false. Returns `invalid_json`
 * for bytes that are damaged, cut, or followed by others.
 */
export async function decompress(
  bytes: Uint8Array,
  coding: ContentCoding,
  onPiece: (piece: Uint8Array) => boolean,
): Promise<Refusal<'invalid_json'> | null> {
  try {
    for await (const piece of decompressed([bytes], coding)) if (!onPiece(piece)) return null;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_json') return error;
    throw error;
  }
  return null;
}

/**
 * Yields the pieces without their compression, each when it is asked for. Throws `invalid_json` for bytes that are
 * damaged, cut, or followed by others, and throws as `pieces` does.
 */
export async function* decompressed(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { format, decoder, frames }: ContentCoding,
): AsyncGenerator<Uint8Array> {
  const damaged = () => new Refusal('invalid_json', { message: `The request body is not valid ${format}.` });
  const framed = frames?.();
  let sent_bytes = 0;
  let failure: unknown;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of pieces) {
        sent_bytes += piece.byteLength;
        framed?.push(piece);
        yield piece;
      }
    } catch (error) {
      failure = error;
      // A stream of node:stream fails with an error only, and a refusal is none.
      throw new Error('the compressed bytes failed');
    }
  }
  const stream = decoder();
  pipeline(source, stream, nothing);
  try {
    for await (const piece of stream) yield piece;
  } catch {
    // The refusal has the complete cause, which is the client's fault, unless its bytes failed.
    throw failure ?? damaged();
  }
  if (stream.bytesWritten < sent_bytes || framed?.is_whole === false) throw damaged();
}

function nothing(): void {
  // The reader of the stream gets its failure.
}
