import { readFileSync } from 'node:fs';
import { GgmlType, readGgufFileInfo } from 'node-llama-cpp';
import { type Weights, WeightsError } from './weights.ts';

/** ggml's AMX product is wrong for a matrix with fewer columns than this. */
const COLUMNS_MIN = 64;
/** What ggml multiplies by AMX in blocks of 32 columns; its other types have blocks of 256. */
const NARROW_TYPES: ReadonlySet<GgmlType> = new Set([GgmlType.Q4_0, GgmlType.Q4_1, GgmlType.Q8_0]);

/** A tensor as a GGUF file describes it; the first dimension is its columns. */
export interface TensorFacts {
  readonly name: string;
  readonly dimensions: readonly (number | bigint)[];
  readonly ggmlType: GgmlType;
}

/** Whether ggml computes with AMX on a CPU that `/proc/cpuinfo` describes so, if the kernel permits it. */
export function servesAmx(cpuinfo = readCpuinfo()): boolean {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.split(/\s+/));
  return ['amx_tile', 'amx_int8', 'avx512_vnni'].every((flag) => flags.has(flag));
}

/** The first matrix that ggml's AMX product gets wrong, or undefined. */
export function narrowMatrix(tensors: readonly TensorFacts[]): TensorFacts | undefined {
  return tensors.find(
    ({ dimensions: [columns = 0, rows = 1], ggmlType }) =>
      NARROW_TYPES.has(ggmlType) && rows > 1 && columns < COLUMNS_MIN,
  );
}

/** This machine's `/proc/cpuinfo`; empty where there is none, as outside of Linux, where ggml has no AMX. */
function readCpuinfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    // Nothing is lost: only Linux has the file, and only there ggml has AMX.
    return '';
  }
}

/**
 * Refuses weights that this CPU would compute wrongly: throws `WeightsError` where ggml uses AMX and a matrix in 4 or 8
 * bits has fewer than 64 columns.
 */
export async function rejectNarrowMatrices(weights: Weights, cpuinfo = readCpuinfo()): Promise<void> {
  if (!servesAmx(cpuinfo)) return;
  for (const part of weights.parts) {
    const { tensorInfo } = await readGgufFileInfo(part, {
      sourceType: 'filesystem',
      spliceSplitFiles: false,
      logWarnings: false,
    });
    const narrow = narrowMatrix(tensorInfo ?? []);
    if (narrow === undefined) continue;
    throw new WeightsError(
      `The model ${weights.first} would give wrong answers on this CPU (its matrix ${narrow.name} has ${narrow.dimensions[0]} columns, and llama.cpp's AMX kernels need ${COLUMNS_MIN}): give it in 32 bits, or use a CPU without AMX.`,
    );
  }
}
