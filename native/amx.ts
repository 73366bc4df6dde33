import { readFileSync } from 'node:fs';
import { GgmlType } from 'node-llama-cpp';
import { excerpt } from '../src/errors/error-message.ts';
import { WeightsError } from './errors.ts';
import type { TensorFacts } from './gguf-file.ts';
import { readHeader } from './model-facts.ts';
import type { Weights } from './weights.ts';

/** ggml's AMX kernels give wrong products for a matrix with fewer columns than this. */
const COLUMNS_MIN = 64;
/**
 * The types with blocks of 32 columns that ggml multiplies by AMX. Its other types have blocks of 256, so their
 * matrices are never narrow.
 */
const NARROW_TYPES: ReadonlySet<number> = new Set([GgmlType.Q4_0, GgmlType.Q4_1, GgmlType.Q8_0]);

/** Returns true if `/proc/cpuinfo` lists the instructions with which ggml uses AMX. The kernel may still forbid AMX. */
export function servesAmx(cpuinfo = readCpuinfo()): boolean {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.split(/\s+/));
  return ['amx_tile', 'amx_int8', 'avx512_vnni'].every((flag) => flags.has(flag));
}

/** Returns the first matrix for which ggml's AMX kernels give wrong products, or undefined. */
export function narrowMatrix(tensors: readonly TensorFacts[]): TensorFacts | undefined {
  return tensors.find(
    ({ dimensions: [columns = 0, rows = 1], type }) =>
      NARROW_TYPES.has(type) && rows > 1 && columns < COLUMNS_MIN,
  );
}

/** Returns the text of `/proc/cpuinfo`; empty outside Linux, where ggml does not use AMX. */
function readCpuinfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    // Nothing is lost: the file and ggml's AMX exist on Linux only.
    return '';
  }
}

/** Throws `WeightsError` if this CPU has AMX and a matrix of the weights is too narrow for ggml's AMX kernels. */
export async function rejectNarrowMatrices(weights: Weights, cpuinfo = readCpuinfo()): Promise<void> {
  if (!servesAmx(cpuinfo)) return;
  for (const part of weights.parts) {
    const { tensors } = await readHeader(part);
    const narrow = narrowMatrix(tensors);
    if (narrow === undefined) continue;
    throw new WeightsError(
      `The model ${weights.first} would give wrong answers on this CPU (${excerpt(narrow.name)} has ${narrow.dimensions[0]} columns, AMX needs ${COLUMNS_MIN}): give it in 32 bits, or use another CPU.`,
    );
  }
}
