import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { reachDisk } from './backup.ts';

/** Each frame ends with a checksum of its content, which reading it verifies. */
const PARAMETERS = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

/** Compresses a file into an empty one that is there; on disk when it resolves. Rejects as the file system throws. */
export async function compressFile(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createZstdCompress(PARAMETERS), writing(to));
  reachDisk(to);
}

/**
 * The reverse. Rejects where a checksum does not hold; a compressed file that is cut gives a cut file, because Bun's
 * decoder does not tell.
 */
export async function decompressFile(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createZstdDecompress(), writing(to));
  reachDisk(to);
}

/** Copies a file into one that is there and empty; on disk when it resolves. */
export async function copyFileInto(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), writing(to));
  reachDisk(to);
}

/** SHA-256 of a file's content. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** SHA-256 of what a compressed file holds. */
export async function hashOfCompressed(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), createZstdDecompress(), hash);
  return hash.digest('hex');
}

function writing(path: string) {
  return createWriteStream(path, { flags: 'r+' });
}
