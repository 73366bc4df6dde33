import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { reachDisk } from './backup.ts';

/** Each frame ends with a checksum of its content, which the decoder verifies. */
const PARAMETERS = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

/**
 * Compresses a file into an existing empty one, which is on disk when this resolves. Rejects with the file system's
 * errors.
 */
export async function compressFile(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createZstdCompress(PARAMETERS), writing(to));
  reachDisk(to);
}

/**
 * Decompresses a file into an existing empty one. Rejects if a checksum is wrong. A truncated file gives a truncated
 * result, because Bun's decoder reports no error.
 */
export async function decompressFile(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createZstdDecompress(), writing(to));
  reachDisk(to);
}

/** Copies a file into an existing empty one, which is on disk when this resolves. */
export async function copyFileInto(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), writing(to));
  reachDisk(to);
}

/** Resolves with the SHA-256 of a file. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Resolves with the SHA-256 of a compressed file's content. */
export async function hashOfCompressed(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), createZstdDecompress(), hash);
  return hash.digest('hex');
}

function writing(path: string) {
  return createWriteStream(path, { flags: 'r+' });
}
