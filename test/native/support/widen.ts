import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readGgufFileInfo } from 'node-llama-cpp';
import type { Weights } from '../../../native/weights.ts';
import { madeOnce } from '../../support/made-once.ts';
import { withTensors } from './gguf.ts';

const BLOCK = 32;
/** A scale of 16 bits before as many numbers of 8. */
const BLOCK_BYTES = 2 + BLOCK;
const GGML_TYPES = { f32: 0, q8_0: 8 } as const;

/** The numbers of a tensor that lies at `offset`. */
function tensorValues(file: DataView, offset: number, type: number, count: number): Float32Array {
  const values = new Float32Array(count);
  if (type === GGML_TYPES.f32) {
    for (let i = 0; i < count; i++) values[i] = file.getFloat32(offset + 4 * i, true);
    return values;
  }
  if (type !== GGML_TYPES.q8_0) throw new Error(`A tensor of type ${type} cannot be widened.`);
  for (let i = 0; i < count; i++) {
    const block = offset + Math.floor(i / BLOCK) * BLOCK_BYTES;
    values[i] = file.getFloat16(block, true) * file.getInt8(block + 2 + (i % BLOCK));
  }
  return values;
}

/** Resolves with the first part of the weights of 8 bits in 32 bits: the same numbers, which are written once. */
export async function widened({ parts, sha256 }: Weights): Promise<string> {
  const program = ['widen.ts', 'gguf.ts'].map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'));
  const folder = await madeOnce('widened', [sha256, program], (folder) => widen(parts, folder));
  return join(folder, basename(parts[0] ?? ''));
}

/** Writes the parts of a GGUF model of 8 bits into `directory` in 32 bits. */
async function widen(parts: readonly string[], directory: string): Promise<void> {
  for (const part of parts) {
    const { metadataSize, tensorInfo = [] } = await readGgufFileInfo(part, {
      sourceType: 'filesystem',
      spliceSplitFiles: false,
      logWarnings: false,
    });
    const bytes = await Bun.file(part).arrayBuffer();
    const file = new DataView(bytes);
    const tensors = tensorInfo.map(({ name, dimensions, ggmlType, fileOffset }) => {
      const shape = dimensions.map(Number);
      const count = shape.reduce((product, size) => product * size, 1);
      return { name, shape, values: tensorValues(file, Number(fileOffset), ggmlType, count) };
    });
    const header = new Uint8Array(bytes, 0, metadataSize);
    await Bun.write(join(directory, basename(part)), withTensors(header, tensors));
  }
}
