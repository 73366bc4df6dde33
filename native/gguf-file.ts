import { type FileHandle, open } from 'node:fs/promises';
import { Slices } from './slices.ts';

/** A metadata value. 64-bit integers are bigints, and arrays that nobody asked for are `null`. */
export type GgufValue =
  | number
  | bigint
  | boolean
  | string
  | null
  | readonly (number | bigint | boolean | string)[];

/** A tensor's description in a GGUF file. The first dimension is its columns. */
export interface TensorFacts {
  readonly name: string;
  readonly dimensions: readonly number[];
  /** ggml's number of the tensor's type. */
  readonly type: number;
}

/** The header of a GGUF file, before its tensors' data. */
export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: readonly TensorFacts[];
}

/** A file contradicts itself. The message is a reason without a subject, for use in brackets. */
export class GgufDamaged extends Error {
  override readonly name = 'GgufDamaged';
}

const MAGIC = 0x46554747;
const STRING = 8;
const ARRAY = 9;
/** The bytes and the reader of each scalar type, by GGUF's number. */
const SCALARS: ReadonlyMap<
  number,
  readonly [bytes: number, read: (view: DataView, at: number) => number | bigint | boolean]
> = new Map([
  [0, [1, (view, at) => view.getUint8(at)]],
  [1, [1, (view, at) => view.getInt8(at)]],
  [2, [2, (view, at) => view.getUint16(at, true)]],
  [3, [2, (view, at) => view.getInt16(at, true)]],
  [4, [4, (view, at) => view.getUint32(at, true)]],
  [5, [4, (view, at) => view.getInt32(at, true)]],
  [6, [4, (view, at) => view.getFloat32(at, true)]],
  [7, [1, (view, at) => view.getUint8(at) !== 0]],
  [10, [8, (view, at) => view.getBigUint64(at, true)]],
  [11, [8, (view, at) => view.getBigInt64(at, true)]],
  [12, [8, (view, at) => view.getFloat64(at, true)]],
]);
/** The smallest entry of each kind: lengths, types and offsets of empty names. */
const METADATA_BYTES_MIN = 8 + 4 + 1;
const TENSOR_BYTES_MIN = 8 + 4 + 4 + 8;
const STRING_BYTES_MIN = 8;
/** ggml's own bound. */
const DIMENSIONS_MAX = 4;
/** The most weights that any type of ggml packs into a byte. */
const WEIGHTS_PER_BYTE_MAX = 8;
const PIECE_BYTES = 1 << 20;
const ITEMS_PER_PAUSE = 256;

/**
 * Reads a GGUF file's metadata and its tensors' shapes, without arrays that `wantsArray` does not want. It refuses
 * counts and lengths for which the rest of the file has no room. So the file's size bounds time and memory. Rejects
 * with `GgufDamaged`, or with the system's error.
 */
export async function readGgufHeader(
  path: string,
  wantsArray: (key: string) => boolean = () => false,
): Promise<GgufHeader> {
  await using file = await open(path, 'r');
  const reader = new HeaderReader(file, (await file.stat()).size);
  if ((await reader.u32()) !== MAGIC) throw new GgufDamaged('it does not begin as a GGUF file');
  // This is the version, which `readWeights` has checked.
  await reader.u32();
  const tensor_count = await reader.count('tensors', TENSOR_BYTES_MIN);
  const metadata_count = await reader.count('entries', METADATA_BYTES_MIN);
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < metadata_count; i++) {
    const key = await reader.string('a key');
    // llama.cpp ends the process over it.
    if (key === '') throw new GgufDamaged('a key is empty');
    if (metadata.has(key)) throw new GgufDamaged(`${JSON.stringify(key)} is there twice`);
    metadata.set(key, await reader.value(key, wantsArray));
  }
  const tensors: TensorFacts[] = [];
  for (let i = 0; i < tensor_count; i++) tensors.push(await reader.tensor());
  return { metadata, tensors };
}

/** Reads a file in pieces, from its beginning. */
class HeaderReader {
  readonly #slices = new Slices();
  readonly #decoder = new TextDecoder();
  #bytes = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  /** The offset in the piece in memory. */
  #at = 0;
  /** The offset in the file of the end of the piece in memory. */
  #end = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly size: number,
  ) {}

  async u32(): Promise<number> {
    const at = await this.#take(4);
    return this.#view.getUint32(at, true);
  }

  /** Reads a number of items that have at least `bytes_min` each. */
  async count(what: string, bytes_min: number): Promise<number> {
    const at = await this.#take(8);
    const count = this.#view.getBigUint64(at, true);
    if (count > BigInt(Math.floor(this.#left / bytes_min))) {
      throw new GgufDamaged(`it has no room for ${count} ${what}`);
    }
    return Number(count);
  }

  async string(what: string): Promise<string> {
    await this.#hold(STRING, what);
    return this.#text();
  }

  async value(key: string, wantsArray: (key: string) => boolean): Promise<GgufValue> {
    const type = await this.u32();
    if (type !== ARRAY) {
      await this.#hold(type, key);
      return this.#item(type, key);
    }
    const item_type = await this.u32();
    const bytes_min = item_type === STRING ? STRING_BYTES_MIN : scalar(item_type, key)[0];
    const count = await this.count(`items of ${key}`, bytes_min);
    const items: (number | bigint | boolean | string)[] = [];
    const is_wanted = wantsArray(key);
    for (let i = 0; i < count; i++) {
      if (i % ITEMS_PER_PAUSE === 0) await this.#slices.pause();
      // An item in memory is not awaited, because there may be hundreds of thousands.
      const loaded = this.#hold(item_type, key);
      if (loaded !== undefined) await loaded;
      if (is_wanted) items.push(this.#item(item_type, key));
      else this.#skip(item_type, key);
    }
    return is_wanted ? items : null;
  }

  async tensor(): Promise<TensorFacts> {
    await this.#slices.pause();
    const name = await this.string("a tensor's name");
    const count = await this.u32();
    if (count > DIMENSIONS_MAX) throw new GgufDamaged(`the tensor ${name} has ${count} dimensions`);
    const dimensions: bigint[] = [];
    for (let i = 0; i < count; i++) dimensions.push(this.#view.getBigUint64(await this.#take(8), true));
    const type = await this.u32();
    const offset = this.#view.getBigUint64(await this.#take(8), true);
    const weights = dimensions.reduce((product, dimension) => product * dimension, 1n);
    if (weights > BigInt(this.size) * BigInt(WEIGHTS_PER_BYTE_MAX) || offset > BigInt(this.size)) {
      throw new GgufDamaged(`it has no room for the tensor ${name}`);
    }
    return { name, dimensions: dimensions.map(Number), type };
  }

  /** Loads the whole next item into memory. Returns undefined if it is already there. */
  #hold(type: number, what: string): Promise<void> | undefined {
    if (type !== STRING) return this.#need(scalar(type, what)[0]);
    const loaded = this.#need(STRING_BYTES_MIN);
    return loaded === undefined ? this.#holdText(what) : loaded.then(() => this.#holdText(what));
  }

  /** Does the same, once a text's length is in memory. */
  #holdText(what: string): Promise<void> | undefined {
    const length = this.#view.getBigUint64(this.#at, true);
    if (length > BigInt(this.#left - STRING_BYTES_MIN)) {
      throw new GgufDamaged(`it has no room for ${length} bytes of ${what}`);
    }
    return this.#need(STRING_BYTES_MIN + Number(length));
  }

  /** Returns the item in memory. */
  #item(type: number, key: string): number | bigint | boolean | string {
    if (type === STRING) return this.#text();
    const [bytes, read] = scalar(type, key);
    this.#at += bytes;
    return read(this.#view, this.#at - bytes);
  }

  #text(): string {
    const end = this.#at + this.#textBytes();
    const text = this.#decoder.decode(this.#bytes.subarray(this.#at + STRING_BYTES_MIN, end));
    this.#at = end;
    return text;
  }

  #skip(type: number, key: string): void {
    this.#at += type === STRING ? this.#textBytes() : scalar(type, key)[0];
  }

  /** Returns the bytes of the text in memory, with its length. */
  #textBytes(): number {
    return STRING_BYTES_MIN + Number(this.#view.getBigUint64(this.#at, true));
  }

  /** The unread bytes of the file. */
  get #left(): number {
    return this.size - this.#end + this.#bytes.byteLength - this.#at;
  }

  /** Reads the next bytes. Resolves with their offset in memory. */
  async #take(bytes: number): Promise<number> {
    await this.#need(bytes);
    this.#at += bytes;
    return this.#at - bytes;
  }

  /** Loads the next bytes into memory. Returns undefined if they are already there. */
  #need(bytes: number): Promise<void> | undefined {
    if (bytes > this.#left) throw new GgufDamaged('it ends too early');
    return this.#at + bytes > this.#bytes.byteLength ? this.#load(bytes) : undefined;
  }

  /** Loads at least this many of the next bytes into memory. */
  async #load(bytes: number): Promise<void> {
    const kept = this.#bytes.subarray(this.#at);
    const loaded = new Uint8Array(Math.min(this.#left, Math.max(bytes, PIECE_BYTES)));
    loaded.set(kept);
    for (let filled = kept.byteLength; filled < loaded.byteLength; ) {
      const { bytesRead } = await this.file.read(loaded, filled, loaded.byteLength - filled, this.#end);
      // Another process truncates the file meanwhile.
      if (bytesRead === 0) throw new GgufDamaged('it ends too early');
      filled += bytesRead;
      this.#end += bytesRead;
    }
    this.#bytes = loaded;
    this.#view = new DataView(loaded.buffer);
    this.#at = 0;
  }
}

function scalar(type: number, key: string) {
  const found = SCALARS.get(type);
  if (found === undefined) throw new GgufDamaged(`${key} has a type that there is none of`);
  return found;
}
