import { expect, test } from 'bun:test';
import { kernelsFinding } from '../../src/cli/findings.ts';

const HASWELL = 'libggml-cpu-haswell.so';
const RAPIDS = 'libggml-cpu-sapphirerapids.so';

test.each([
  [
    'AVX2 only',
    { has_own_kernels: false, library: HASWELL, has_amx: false, uses_amx: false },
    'ok',
    `llama.cpp's (${HASWELL}), without AMX`,
  ],
  [
    'AVX-512 VNNI',
    { has_own_kernels: true, library: 'libggml-cpu-zen4.so', has_amx: false, uses_amx: false },
    'ok',
    "the addon's (AVX-512 VNNI) and llama.cpp's (libggml-cpu-zen4.so), without AMX",
  ],
  [
    'AMX',
    { has_own_kernels: true, library: RAPIDS, has_amx: true, uses_amx: true },
    'ok',
    `the addon's (AVX-512 VNNI) and llama.cpp's (${RAPIDS}), which use AMX`,
  ],
  [
    'AMX that may not be used',
    { has_own_kernels: false, library: RAPIDS, has_amx: true, uses_amx: false },
    'slow',
    `llama.cpp's (${RAPIDS}), without AMX: the CPU has it, but the system does not permit its use`,
  ],
  [
    'a system that does not tell its libraries',
    { has_own_kernels: false, library: undefined, has_amx: false, uses_amx: false },
    'ok',
    "llama.cpp's, without AMX",
  ],
] as const)('the kernels that serve: %s', (_, cpu, state, detail) => {
  expect(kernelsFinding(cpu)).toEqual({ subject: 'kernels', state, detail });
});
