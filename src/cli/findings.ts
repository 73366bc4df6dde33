import type { CpuKernels } from '../../native/engine.ts';

/** How one thing was found. `slow` works, but less well than it could; `warning` works, and needs a look. */
export interface Finding {
  readonly subject: string;
  readonly state: 'ok' | 'slow' | 'warning' | 'broken';
  readonly detail: string;
}

/** Which kernels compute on the CPU: ours where it has the instructions, a variant of llama.cpp's, and AMX. */
export function kernelsFinding(cpu: CpuKernels): Finding {
  const llama = `llama.cpp's${cpu.library === undefined ? '' : ` (${cpu.library})`}`;
  const kernels = cpu.has_own_kernels ? `the addon's (AVX-512 VNNI) and ${llama}` : llama;
  if (cpu.uses_amx) return { subject: 'kernels', state: 'ok', detail: `${kernels}, which use AMX` };
  return cpu.has_amx
    ? {
        subject: 'kernels',
        state: 'slow',
        detail: `${kernels}, without AMX: the CPU has it, but the system does not permit its use`,
      }
    : { subject: 'kernels', state: 'ok', detail: `${kernels}, without AMX` };
}
