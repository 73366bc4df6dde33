import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { GgmlType } from 'node-llama-cpp';
import { narrowMatrix, rejectNarrowMatrices, servesAmx } from '../../native/amx.ts';
import { WeightsError } from '../../native/errors.ts';
import type { TensorFacts } from '../../native/gguf-file.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/weights.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type TinyShape, writeTinyModel } from './support/gguf.ts';
import { TINY_MARKERS } from './support/models.ts';

const SAPPHIRE_RAPIDS =
  'processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512f avx512_vnni amx_bf16 amx_tile amx_int8\n';
const ICE_LAKE = 'processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512f avx512_vnni\n';

const NARROW: TinyShape = { width: 256, heads: 16, cache_heads: 1, hidden: 32, quantized: true };
const WIDE: TinyShape = { ...NARROW, hidden: 64 };

test.each([
  ['Sapphire Rapids', SAPPHIRE_RAPIDS, true],
  ['Ice Lake', ICE_LAKE, false],
  [
    'a CPU whose name only mentions it',
    'model name\t: amx_tile amx_int8 avx512_vnni\nflags\t\t: fpu\n',
    false,
  ],
  ['no file', '', false],
])('AMX serves: %s', (_, cpuinfo, expected) => {
  expect(servesAmx(cpuinfo)).toBe(expected);
});

test('a matrix is narrow with fewer than 64 columns in a type that AMX multiplies', () => {
  const tensor = (columns: number, rows: number | undefined, type: GgmlType): TensorFacts => ({
    name: `${columns}`,
    dimensions: rows === undefined ? [columns] : [columns, rows],
    type,
  });
  for (const type of [GgmlType.Q4_0, GgmlType.Q4_1, GgmlType.Q8_0]) {
    expect(narrowMatrix([tensor(64, 32, type), tensor(32, 256, type)])?.name).toBe('32');
    expect(narrowMatrix([tensor(64, 32, type), tensor(32, undefined, type)])).toBeUndefined();
  }
  expect(narrowMatrix([tensor(32, 256, GgmlType.F32), tensor(256, 32, GgmlType.Q6_K)])).toBeUndefined();
});

describe('where AMX serves', () => {
  test.each([
    ['narrow matrices are refused', NARROW, SAPPHIRE_RAPIDS, false],
    ['wide ones are not', WIDE, SAPPHIRE_RAPIDS, true],
    ['narrow ones in 32 bits are not', { ...NARROW, quantized: false }, SAPPHIRE_RAPIDS, true],
    ['and elsewhere none are', NARROW, ICE_LAKE, true],
  ])('%s', async (_, shape, cpuinfo, is_accepted) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, { ...TINY_MARKERS, shape });
    const checked = rejectNarrowMatrices(await verifyWeights(path), cpuinfo);
    if (is_accepted) return await checked;
    const refusal: unknown = await checked.catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(WeightsError);
    expect(String(refusal)).toContain(`${path} would give wrong answers on this CPU`);
  });

  test('the weights that come with the service are served', async () => {
    await rejectNarrowMatrices(await verifyWeights(EMBEDDED_WEIGHTS), SAPPHIRE_RAPIDS);
  });
});
