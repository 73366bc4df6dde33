import { availableParallelism } from 'node:os';
import { type CpuKernels, computingThreads } from '../../native/engine.ts';

/**
 * The finding about one subject. `slow` works, but less well than it could; `warning` works, but needs
 * attention.
 */
export interface Finding {
  readonly subject: string;
  readonly state: 'ok' | 'slow' | 'warning' | 'broken';
  readonly detail: string;
}

/** The names of the addon's kernels' instructions, as operators know them. */
const INSTRUCTIONS = { amx: 'AMX', avx512: 'AVX-512 VNNI', avx2: 'AVX2' } as const;

/**
 * Returns the finding about the CPU kernels: ours where it has the instructions, a variant of llama.cpp's,
 * and AMX.
 */
export function kernelsFinding(cpu: CpuKernels): Finding {
  const llama = `llama.cpp's${cpu.library === undefined ? '' : ` (${cpu.library})`}`;
  const kernels = cpu.own === 'none' ? llama : `the addon's (${INSTRUCTIONS[cpu.own]}) and ${llama}`;
  if (cpu.uses_amx) return { subject: 'kernels', state: 'ok', detail: `${kernels}, which use AMX` };
  return cpu.has_amx
    ? {
        subject: 'kernels',
        state: 'slow',
        detail: `${kernels}, without AMX: the CPU has it, but the system does not permit its use`,
      }
    : { subject: 'kernels', state: 'ok', detail: `${kernels}, without AMX` };
}

/** Returns the finding about the threads that compute on a CPU. More of them than cores wait for each other. */
export function threadsFinding(threads: number | 'auto', cores = availableParallelism()): Finding {
  const subject = 'threads';
  const { fewest, most } = computingThreads(threads === 'auto' ? undefined : threads, cores);
  const while_idle = fewest < most ? `, ${most} while nothing else needs them` : '';
  const detail = `${fewest} of ${cores} cores compute${while_idle} (--threads ${threads})`;
  return most > cores
    ? {
        subject,
        state: 'slow',
        detail: `${most} threads on ${cores} cores wait for each other: lower --threads`,
      }
    : { subject, state: 'ok', detail };
}
