import { expect, test } from 'bun:test';
import { constants, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { ZstdFrames } from '../../src/http/zstd-frames.ts';
import { propertySeed } from '../ledger/support.ts';

function isWhole(bytes: Uint8Array, piece_bytes = Number.POSITIVE_INFINITY): boolean {
  const frames = new ZstdFrames();
  for (let at = 0; at < bytes.byteLength; at += piece_bytes) {
    frames.push(bytes.subarray(at, Math.min(bytes.byteLength, at + piece_bytes)));
  }
  return frames.is_whole;
}

const { ZSTD_c_checksumFlag, ZSTD_c_contentSizeFlag, ZSTD_c_compressionLevel } = constants;

/** A frame to skip, with so many bytes. */
function skippedFrame(bytes: number): Uint8Array {
  const head = [0x53, 0x2a, 0x4d, 0x18, bytes & 255, bytes >> 8, 0, 0];
  return new Uint8Array([...head, ...Array(bytes).fill(7)]);
}

test('frames are whole to the last byte, in pieces of any size, and no byte earlier or later', () => {
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat({ max: 400_000 }).map((size) => new Uint8Array(size).fill(97)),
    fc.nat({ max: 400_000 }).map((size) => Uint8Array.from({ length: size }, (_, at) => (at * at) % 251)),
  );
  const frame = fc
    .record({
      content,
      checksum: fc.nat({ max: 1 }),
      size: fc.nat({ max: 1 }),
      level: fc.integer({ min: 1, max: 9 }),
    })
    .map(({ content, checksum, size, level }) =>
      zstdCompressSync(content, {
        params: {
          [ZSTD_c_checksumFlag]: checksum,
          [ZSTD_c_contentSizeFlag]: size,
          [ZSTD_c_compressionLevel]: level,
        },
      }),
    );
  const any = fc.oneof({ weight: 4, arbitrary: frame }, fc.nat({ max: 300 }).map(skippedFrame));
  fc.assert(
    fc.property(
      fc.array(any, { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 5_000 }),
      fc.nat(),
      (frames, piece_bytes, place) => {
        const bytes = Buffer.concat(frames);
        expect(isWhole(bytes)).toBe(true);
        expect(isWhole(bytes, piece_bytes)).toBe(true);
        expect(isWhole(Buffer.concat([bytes, Buffer.from([0])]))).toBe(false);
        const cut = bytes.subarray(0, place % bytes.byteLength);
        const ends = frames.map((_, index) => Buffer.concat(frames.slice(0, index + 1)).byteLength);
        expect(isWhole(cut, piece_bytes)).toBe(ends.includes(cut.byteLength));
      },
    ),
    { seed: propertySeed('zstd frames'), numRuns: 200 },
  );
});

test('nothing, and what is no zstd, is not whole', () => {
  expect(isWhole(new Uint8Array())).toBe(false);
  expect(isWhole(Buffer.from('{"model":"decision-1"}'))).toBe(false);
});
