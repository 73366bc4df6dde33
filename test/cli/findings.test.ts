import { expect, test } from 'bun:test';
import { kernelsFinding, threadsFinding } from '../../src/cli/findings.ts';
import { memoryFinding } from '../../src/cli/machine-findings.ts';

const HASWELL = 'libggml-cpu-haswell.so';
const SANDYBRIDGE = 'libggml-cpu-sandybridge.so';
const RAPIDS = 'libggml-cpu-sapphirerapids.so';

test.each([
  [
    'AVX2',
    { own: 'avx2', library: HASWELL, has_amx: false, uses_amx: false },
    'ok',
    `the addon's (AVX2) and llama.cpp's (${HASWELL}), without AMX`,
  ],
  [
    'a CPU with neither',
    { own: 'none', library: SANDYBRIDGE, has_amx: false, uses_amx: false },
    'ok',
    `llama.cpp's (${SANDYBRIDGE}), without AMX`,
  ],
  [
    'AVX-512 VNNI',
    { own: 'avx512', library: 'libggml-cpu-zen4.so', has_amx: false, uses_amx: false },
    'ok',
    "the addon's (AVX-512 VNNI) and llama.cpp's (libggml-cpu-zen4.so), without AMX",
  ],
  [
    'AMX',
    { own: 'amx', library: RAPIDS, has_amx: true, uses_amx: true },
    'ok',
    `the addon's (AMX) and llama.cpp's (${RAPIDS}), which use AMX`,
  ],
  [
    'AMX that may not be used',
    { own: 'none', library: RAPIDS, has_amx: true, uses_amx: false },
    'slow',
    `llama.cpp's (${RAPIDS}), without AMX: the CPU has it, but the system does not permit its use`,
  ],
  [
    'a system that does not tell its libraries',
    { own: 'none', library: undefined, has_amx: false, uses_amx: false },
    'ok',
    "llama.cpp's, without AMX",
  ],
] as const)('the kernels that serve: %s', (_, cpu, state, detail) => {
  expect(kernelsFinding(cpu)).toEqual({ subject: 'kernels', state, detail });
});

test('the threads that compute are named, and more of them than cores are slow', () => {
  expect(threadsFinding('auto', 100)).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(
      process.platform === 'linux'
        ? /^99 of 100 cores compute, 100 while nothing else needs them \(--threads auto\)$/
        : /^99 of 100 cores compute \(--threads auto\)$/,
    ),
  });
  expect(threadsFinding('auto', 1)).toMatchObject({ detail: '1 of 1 cores compute (--threads auto)' });
  expect(threadsFinding(2, 2)).toMatchObject({ state: 'ok', detail: '2 of 2 cores compute (--threads 2)' });
  expect(threadsFinding(3, 2)).toMatchObject({ state: 'slow' });
});

test('memory that is too small for the weights under load is a warning with what they need', async () => {
  expect(await memoryFinding(undefined, { bytes: 700_000_000, limiter: 'cgroup' })).toEqual({
    subject: 'memory',
    state: 'warning',
    detail:
      '700 MB, the limit of its control group (container or unit): give it 793 MB, or it may be killed under load',
  });
  expect(await memoryFinding(undefined, { bytes: 900_000_000, limiter: 'machine' })).toEqual({
    subject: 'memory',
    state: 'ok',
    detail: '900 MB',
  });
});
