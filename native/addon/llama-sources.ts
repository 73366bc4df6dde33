import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { PROJECT_ROOT } from '../../src/files/project-root.ts';

/** llama.cpp's files that the addon is compiled with, by folder: nearly all are headers of its libraries. */
const FILES: readonly (readonly [folder: string, names: RegExp])[] = [
  ['include', /\.h$/],
  ['ggml/include', /\.h$/],
  ['ggml/src', /\.h$/],
  // The table of character classes of its tokenizer.
  ['src', /^unicode(-data)?\.h$|^unicode-data\.cpp$/],
];

type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';

interface GitObject {
  readonly type: ObjectType;
  readonly data: Buffer;
}

const OBJECT_TYPES: ReadonlyMap<number, ObjectType> = new Map([
  [1, 'commit'],
  [2, 'tree'],
  [3, 'blob'],
  [4, 'tag'],
]);
const OFFSET_DELTA = 6;
const REFERENCE_DELTA = 7;

class BundleError extends Error {
  override readonly name = 'BundleError';
}

class ByteReader {
  at: number;

  constructor(
    readonly bytes: Buffer,
    start = 0,
  ) {
    this.at = start;
  }

  byte(): number {
    const value = this.bytes[this.at++];
    if (value === undefined) throw new BundleError('The bundle is cut short.');
    return value;
  }

  /**
   * Reads a number in groups of seven bits, lowest first. The byte `first` was already read, and has its lowest `bits`
   * bits.
   */
  variable(first: number, bits: number): number {
    let value = first & ((1 << bits) - 1);
    let scale = 2 ** bits;
    for (let byte = first; byte & 0x80; scale *= 128) {
      byte = this.byte();
      value += (byte & 0x7f) * scale;
    }
    return value;
  }

  /** Inflates one zlib stream. Only its inflated size is known. */
  inflate(size: number): Buffer {
    const longest = size + (size >> 9) + 1024;
    const input = this.bytes.subarray(this.at, this.at + longest);
    const inflated: unknown = inflateSync(input, { info: true });
    if (!isInflated(inflated) || inflated.buffer.length !== size) {
      throw new BundleError('The bundle has a broken object.');
    }
    this.at += inflated.engine.bytesWritten;
    return inflated.buffer;
  }
}

/** Returns true for a result of `inflateSync` with `info`, whose type is not declared. */
function isInflated(value: unknown): value is { buffer: Buffer; engine: { bytesWritten: number } } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'buffer' in value &&
    Buffer.isBuffer(value.buffer) &&
    'engine' in value &&
    typeof value.engine === 'object' &&
    value.engine !== null &&
    'bytesWritten' in value.engine &&
    typeof value.engine.bytesWritten === 'number'
  );
}

/** Applies a git delta: copies from the base and literal bytes. */
function applyDelta(base: Buffer, delta: Buffer): Buffer {
  const reader = new ByteReader(delta);
  reader.variable(reader.byte(), 7);
  const result = Buffer.alloc(reader.variable(reader.byte(), 7));
  let written = 0;
  while (reader.at < delta.length) {
    const instruction = reader.byte();
    if (instruction & 0x80) {
      let offset = 0;
      let size = 0;
      for (let i = 0; i < 4; i++) if (instruction & (1 << i)) offset += reader.byte() * 2 ** (8 * i);
      for (let i = 0; i < 3; i++) if (instruction & (0x10 << i)) size += reader.byte() * 2 ** (8 * i);
      written += base.copy(result, written, offset, offset + (size || 0x10000));
    } else {
      written += delta.copy(result, written, reader.at, reader.at + instruction);
      reader.at += instruction;
    }
  }
  return result;
}

/** Reads all objects of a pack, by hash. Layout: git's "pack-format". */
function readPack(bundle: Buffer, start: number): Map<string, GitObject> {
  const reader = new ByteReader(bundle, start);
  if (bundle.toString('latin1', start, start + 4) !== 'PACK')
    throw new BundleError('The bundle has no pack.');
  const count = bundle.readUInt32BE(start + 8);
  reader.at = start + 12;
  const byOffset = new Map<number, GitObject>();
  const byHash = new Map<string, GitObject>();
  for (let i = 0; i < count; i++) {
    const offset = reader.at;
    const first = reader.byte();
    const kind = (first >> 4) & 7;
    const size = reader.variable(first, 4);
    let base: GitObject | undefined;
    if (kind === OFFSET_DELTA) {
      let byte = reader.byte();
      let distance = byte & 0x7f;
      while (byte & 0x80) {
        byte = reader.byte();
        distance = (distance + 1) * 128 + (byte & 0x7f);
      }
      base = byOffset.get(offset - distance);
    } else if (kind === REFERENCE_DELTA) {
      base = byHash.get(bundle.toString('hex', reader.at, reader.at + 20));
      reader.at += 20;
    }
    const data = reader.inflate(size);
    const type = base?.type ?? OBJECT_TYPES.get(kind);
    if (type === undefined) throw new BundleError('The bundle has an object of an unknown kind.');
    const object: GitObject =
      base === undefined ? { type, data } : { type, data: applyDelta(base.data, data) };
    byOffset.set(offset, object);
    const header = `${object.type} ${object.data.length}\0`;
    byHash.set(createHash('sha1').update(header).update(object.data).digest('hex'), object);
  }
  return byHash;
}

/** Reads the entries of a tree: hashes by name. */
function readTree(tree: Buffer): Map<string, string> {
  const entries = new Map<string, string>();
  for (let at = 0; at < tree.length; ) {
    const end = tree.indexOf(0, at);
    const [, name] = tree.toString('utf8', at, end).split(' ', 2);
    if (end < 0 || name === undefined) throw new BundleError('The bundle has a broken tree.');
    entries.set(name, tree.toString('hex', end + 1, end + 21));
    at = end + 21;
  }
  return entries;
}

/**
 * Writes llama.cpp's headers and its table of characters into `destination`, without folders. They come from
 * node-llama-cpp's git bundle, which has the same release as its prebuilt libraries. It needs no git, which a machine
 * with a compiler may lack. Throws if the bundle is truncated or invalid.
 */
export async function extractLlamaSources(bundle_path: string, destination: string): Promise<void> {
  const bundle = Buffer.from(await Bun.file(bundle_path).arrayBuffer());
  const end = bundle.indexOf('\n\n');
  const head = bundle.toString('latin1', 0, Math.max(end, 0)).split('\n');
  const commitHash = head.map((line) => /^([0-9a-f]{40}) HEAD$/.exec(line)?.[1]).find((hash) => hash);
  if (!head[0]?.startsWith('# v2 git bundle') || commitHash === undefined) {
    throw new BundleError(`${bundle_path} is not a git bundle.`);
  }
  const objects = readPack(bundle, end + 2);
  const get = (hash: string | undefined, type: ObjectType): Buffer => {
    const object = hash === undefined ? undefined : objects.get(hash);
    if (object?.type !== type) throw new BundleError(`The bundle has no such ${type}.`);
    return object.data;
  };
  const root = /^tree ([0-9a-f]{40})\n/.exec(get(commitHash, 'commit').toString('latin1'))?.[1];
  await mkdir(destination, { recursive: true });
  for (const [folder, names] of FILES) {
    let tree = readTree(get(root, 'tree'));
    for (const name of folder.split('/')) tree = readTree(get(tree.get(name), 'tree'));
    for (const [name, hash] of tree) {
      if (names.test(name)) await Bun.write(join(destination, name), get(hash, 'blob'));
    }
  }
}

/** Returns the path of the bundle beside node-llama-cpp's entry point. */
export function bundlePath(): string {
  const entry = Bun.resolveSync('node-llama-cpp', PROJECT_ROOT);
  return join(dirname(dirname(entry)), 'llama', 'gitRelease.bundle');
}
