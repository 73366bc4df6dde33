import { writeFile } from 'node:fs/promises';

/** A metadata value as GGUF types it. */
export type GgufValue =
  | { readonly type: 'u32'; readonly value: number }
  | { readonly type: 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'i32s'; readonly value: readonly number[] }
  | { readonly type: 'strings'; readonly value: readonly string[] };

/** A tensor; `shape` lists the fastest-running dimension first, as GGUF does. */
export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
  /** True for 8 bits (Q8_0) instead of 32-bit floats. */
  readonly quantized?: boolean;
}

const ALIGNMENT = 32;
const TENSOR_TYPES = { f32: 0, q8_0: 8 } as const;
const TOKEN_TYPES = { normal: 1, control: 3, maker_defined: 4 } as const;
const VALUE_TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

class Writer {
  readonly #pieces: Buffer[] = [];
  length = 0;

  bytes(piece: Uint8Array): void {
    this.#pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    this.length += piece.byteLength;
  }
  u32(value: number): void {
    const piece = Buffer.alloc(4);
    piece.writeUInt32LE(value);
    this.bytes(piece);
  }
  i32(value: number): void {
    const piece = Buffer.alloc(4);
    piece.writeInt32LE(value);
    this.bytes(piece);
  }
  f32(value: number): void {
    const piece = Buffer.alloc(4);
    piece.writeFloatLE(value);
    this.bytes(piece);
  }
  u64(value: number): void {
    const piece = Buffer.alloc(8);
    piece.writeBigUInt64LE(BigInt(value));
    this.bytes(piece);
  }
  string(value: string): void {
    const piece = Buffer.from(value, 'utf8');
    this.u64(piece.length);
    this.bytes(piece);
  }
  align(): void {
    this.bytes(Buffer.alloc((ALIGNMENT - (this.length % ALIGNMENT)) % ALIGNMENT));
  }
  value(entry: GgufValue): void {
    switch (entry.type) {
      case 'u32':
        this.u32(VALUE_TYPES.u32);
        this.u32(entry.value);
        break;
      case 'f32':
        this.u32(VALUE_TYPES.f32);
        this.f32(entry.value);
        break;
      case 'bool':
        this.u32(VALUE_TYPES.bool);
        this.bytes(Buffer.from([entry.value ? 1 : 0]));
        break;
      case 'string':
        this.u32(VALUE_TYPES.string);
        this.string(entry.value);
        break;
      case 'i32s':
        this.array(VALUE_TYPES.i32, entry.value.length);
        for (const item of entry.value) this.i32(item);
        break;
      case 'strings':
        this.array(VALUE_TYPES.string, entry.value.length);
        for (const item of entry.value) this.string(item);
    }
  }
  array(type: number, length: number): void {
    this.u32(VALUE_TYPES.array);
    this.u32(type);
    this.u64(length);
  }
  concat(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}

/** Blocks of 32 numbers: a scale of 16 bits, then as many multiples of it. */
function quantizedBytes(values: Float32Array): Uint8Array {
  const block = 32;
  const blocks = Array.from({ length: values.length / block }, (_, index) => {
    const numbers = values.subarray(index * block, (index + 1) * block);
    const scale = Math.max(...numbers.map(Math.abs)) / 127;
    const bytes = new DataView(new ArrayBuffer(2 + block));
    bytes.setFloat16(0, scale, true);
    numbers.forEach((number, at) => {
      bytes.setInt8(2 + at, scale === 0 ? 0 : Math.round(number / scale));
    });
    return new Uint8Array(bytes.buffer);
  });
  return Buffer.concat(blocks);
}

function tensorBytes({ values, quantized }: GgufTensor): Uint8Array {
  return quantized ? quantizedBytes(values) : new Uint8Array(values.buffer);
}

/** A GGUF file, version 3, as bytes. */
export function ggufBytes(
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Buffer {
  const writer = new Writer();
  writer.bytes(Buffer.from('GGUF'));
  writer.u32(3);
  writer.u64(tensors.length);
  writer.u64(Object.keys(metadata).length);
  for (const [key, entry] of Object.entries(metadata)) {
    writer.string(key);
    writer.value(entry);
  }
  return withTensors(writer.concat(), tensors);
}

/** A GGUF file of a header, which ends with the metadata, and of tensors. */
export function withTensors(header: Uint8Array, tensors: readonly GgufTensor[]): Buffer {
  const writer = new Writer();
  writer.bytes(header);
  let offset = 0;
  const written = tensors.map((tensor) => ({ ...tensor, bytes: tensorBytes(tensor) }));
  for (const tensor of written) {
    writer.string(tensor.name);
    writer.u32(tensor.shape.length);
    for (const dimension of tensor.shape) writer.u64(dimension);
    writer.u32(tensor.quantized ? TENSOR_TYPES.q8_0 : TENSOR_TYPES.f32);
    writer.u64(offset);
    offset += Math.ceil(tensor.bytes.byteLength / ALIGNMENT) * ALIGNMENT;
  }
  for (const { bytes } of written) {
    writer.align();
    writer.bytes(bytes);
  }
  return writer.concat();
}

/** Sizes of a generated model. */
export interface TinyShape {
  readonly width: number;
  readonly heads: number;
  /** Heads of keys and values, a divisor of `heads`. */
  readonly cache_heads: number;
  readonly hidden: number;
  /** True for matrices of 8 bits, whose sizes are multiples of 32. */
  readonly quantized: boolean;
}

/** Options of a generated model. */
export interface TinyModel {
  /** Control tokens, which come first in the vocabulary. */
  readonly control: readonly string[];
  /** Tokens of the maker's own, which llama.cpp matches in any text; they follow the control tokens. */
  readonly maker_defined?: readonly string[];
  /** Text tokens of more than one character, made by merging one character at a time. */
  readonly words: readonly string[];
  readonly chat_template?: string;
  /** llama.cpp's name of how text is split into words; GPT-2's unless given. */
  readonly pre_tokenizer?: string;
  readonly context_tokens?: number;
  /** 2 unless given. */
  readonly layers?: number;
  readonly seed?: number;
  readonly shape?: TinyShape;
  /** llama.cpp's name of the model's kind; `llama` unless given. */
  readonly architecture?: string;
  /** More metadata, which only that kind has, and the widths of more norms of each layer by their names. */
  readonly metadata?: Readonly<Record<string, GgufValue>>;
  readonly norms?: Readonly<Record<string, number>>;
  /** All tensors but the embeddings, by their names and shapes, of a kind that has others. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** A number of the feed-forward's hidden layer that is NaN for every token, in every layer. */
  readonly nan_hidden?: number;
}

/** GPT-2's way of writing bytes as printable characters. */
function byteTexts(): readonly string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    if (printable) return String.fromCharCode(byte);
    next += 1;
    return String.fromCharCode(next - 1);
  });
}

/** Deterministic numbers around 0 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
}

const SHAPE: TinyShape = { width: 64, heads: 2, cache_heads: 2, hidden: 128, quantized: false };
const LAYERS = 2;

function tensorsOf(
  vocabulary_size: number,
  { layers = LAYERS, seed = 1, shape = SHAPE, norms = {}, tensors, nan_hidden }: TinyModel,
): readonly GgufTensor[] {
  const { width, heads, cache_heads, hidden, quantized } = shape;
  const random = randomNumbers(seed);
  const cache_width = (width / heads) * cache_heads;
  const matrix = (name: string, columns: number, rows: number): GgufTensor => ({
    name,
    shape: [columns, rows],
    values: Float32Array.from({ length: columns * rows }, () => random() * Math.sqrt(3 / columns)),
    quantized,
  });
  const embeddings = matrix('token_embd.weight', width, vocabulary_size);
  if (tensors !== undefined) {
    const others = Object.entries(tensors).map(([name, [columns = 1, rows]]) => ({
      ...matrix(name, columns, rows ?? 1),
      shape: rows === undefined ? [columns] : [columns, rows],
    }));
    return [embeddings, ...others];
  }
  const gate = (layer: number): GgufTensor => {
    const made = matrix(`blk.${layer}.ffn_gate.weight`, width, hidden);
    if (nan_hidden !== undefined) made.values.fill(Number.NaN, nan_hidden * width, (nan_hidden + 1) * width);
    return made;
  };
  const norm = (name: string, size = width): GgufTensor => ({
    name,
    shape: [size],
    values: new Float32Array(size).fill(1),
  });
  return [
    embeddings,
    norm('output_norm.weight'),
    ...Array.from({ length: layers }, (_, layer) => [
      norm(`blk.${layer}.attn_norm.weight`),
      matrix(`blk.${layer}.attn_q.weight`, width, width),
      matrix(`blk.${layer}.attn_k.weight`, width, cache_width),
      matrix(`blk.${layer}.attn_v.weight`, width, cache_width),
      matrix(`blk.${layer}.attn_output.weight`, width, width),
      norm(`blk.${layer}.ffn_norm.weight`),
      gate(layer),
      matrix(`blk.${layer}.ffn_up.weight`, width, hidden),
      matrix(`blk.${layer}.ffn_down.weight`, hidden, width),
      ...Object.entries(norms).map(([name, size]) => norm(`blk.${layer}.${name}.weight`, size)),
    ]).flat(),
  ];
}

/** A model of a few small layers with random weights and a byte-level vocabulary, as GGUF bytes. */
export function tinyModelBytes(model: TinyModel): Buffer {
  const bytes = byteTexts();
  const encoded = model.words.map((word) =>
    Array.from(Buffer.from(word, 'utf8'), (byte) => bytes[byte] ?? '').join(''),
  );
  const merged = new Set<string>();
  const merges: string[] = [];
  for (const word of encoded) {
    for (let length = 2; length <= word.length; length += 1) {
      const whole = word.slice(0, length);
      if (merged.has(whole)) continue;
      merged.add(whole);
      merges.push(`${word.slice(0, length - 1)} ${word.slice(length - 1, length)}`);
    }
  }
  const maker_defined = model.maker_defined ?? [];
  const tokens = [...model.control, ...maker_defined, ...bytes, ...merged];
  const tokenType = (id: number): number => {
    if (id < model.control.length) return TOKEN_TYPES.control;
    return id < model.control.length + maker_defined.length ? TOKEN_TYPES.maker_defined : TOKEN_TYPES.normal;
  };
  const context_tokens = model.context_tokens ?? 2048;
  const { architecture = 'llama', layers = LAYERS, shape = SHAPE } = model;
  return ggufBytes(
    {
      'general.architecture': { type: 'string', value: architecture },
      'general.name': { type: 'string', value: 'tiny' },
      [`${architecture}.context_length`]: { type: 'u32', value: context_tokens },
      [`${architecture}.embedding_length`]: { type: 'u32', value: shape.width },
      [`${architecture}.block_count`]: { type: 'u32', value: layers },
      [`${architecture}.feed_forward_length`]: { type: 'u32', value: shape.hidden },
      [`${architecture}.rope.dimension_count`]: { type: 'u32', value: shape.width / shape.heads },
      [`${architecture}.attention.head_count`]: { type: 'u32', value: shape.heads },
      [`${architecture}.attention.head_count_kv`]: { type: 'u32', value: shape.cache_heads },
      [`${architecture}.attention.layer_norm_rms_epsilon`]: { type: 'f32', value: 1e-5 },
      'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
      'tokenizer.ggml.pre': { type: 'string', value: model.pre_tokenizer ?? 'gpt-2' },
      'tokenizer.ggml.tokens': { type: 'strings', value: tokens },
      'tokenizer.ggml.token_type': {
        type: 'i32s',
        value: tokens.map((_, id) => tokenType(id)),
      },
      'tokenizer.ggml.merges': { type: 'strings', value: merges },
      'tokenizer.ggml.bos_token_id': { type: 'u32', value: 0 },
      'tokenizer.ggml.eos_token_id': { type: 'u32', value: 0 },
      'tokenizer.ggml.add_bos_token': { type: 'bool', value: false },
      ...(model.chat_template === undefined
        ? {}
        : { 'tokenizer.chat_template': { type: 'string', value: model.chat_template } as const }),
      ...model.metadata,
    },
    tensorsOf(tokens.length, model),
  );
}

/**
 * A model in which a number of its metadata is another. With a thousand layers llama.cpp ends its process over it, though
 * all counts of the file are right.
 */
export function withMetadata(model: Uint8Array, key: string, value: number): Buffer {
  const changed = Buffer.from(model);
  const at = changed.indexOf(key);
  if (at < 0) throw new Error(`The model has no ${key}.`);
  changed.writeUInt32LE(value, at + key.length + 4);
  return changed;
}

/** Writes a generated model to `path`. */
export async function writeTinyModel(path: string, model: TinyModel): Promise<void> {
  await writeFile(path, tinyModelBytes(model));
}
