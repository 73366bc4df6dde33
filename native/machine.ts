import { errorMessage } from '../src/errors/error-message.ts';
import { servesAmx } from './amx.ts';
import { loadedCpuLibrary } from './cpu-library.ts';
import { addonStatus } from './evaluators/addon/addon-status.ts';
import type { KernelInstructions } from './evaluators/addon/binding.ts';
import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import { llamaBackend } from './evaluators/llama/backend.ts';
import type { Gpu } from './gpu.ts';

/** The kernels of the CPU. */
export interface CpuKernels {
  /** The instructions of the addon's kernels; `none` if plans are computed without them. */
  readonly own: KernelInstructions;
  /** AMX: the CPU may have it without its use by llama.cpp. */
  readonly has_amx: boolean;
  readonly uses_amx: boolean;
  /** The file of ggml's variant; undefined if unknown. */
  readonly library: string | undefined;
}

/** The device that computes plans. */
export interface DeviceStatus {
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** The maker's name; undefined if the evaluator does not know it. */
  readonly device_name: string | undefined;
  /** The reason for a wanted GPU that is not used. */
  readonly missing_gpu: string | undefined;
  /** Undefined on a GPU. */
  readonly kernels: CpuKernels | undefined;
}

/** The evaluator and device of this machine. `unavailable` is the reason, in a sentence. */
export interface MachineStatus {
  /** Undefined if no wanted evaluator can be used. */
  readonly device: DeviceStatus | { readonly unavailable: string } | undefined;
  /** The addon; undefined if another evaluator is wanted. */
  readonly addon:
    | { readonly path: string; readonly is_prebuilt: boolean }
    | { readonly unavailable: string }
    | undefined;
}

/**
 * Resolves with the evaluator and device of this machine, without a model. Builds the addon if it is wanted and
 * missing. Loads node-llama-cpp's backend only if that serves.
 */
export async function inspectMachine(gpu: Gpu, wanted: EvaluatorChoice): Promise<MachineStatus> {
  if (wanted === 'llama') return { device: await llamaDevice(gpu), addon: undefined };
  const addon = await addonStatus(gpu);
  if (addon.available) {
    const { device, device_name, missing_gpu, uses_amx } = addon;
    const kernels = device === 'cpu' ? cpuKernels(addon.kernels, uses_amx) : undefined;
    return {
      device: { device, device_name, missing_gpu, kernels },
      addon: { path: addon.addon_path, is_prebuilt: addon.is_prebuilt },
    };
  }
  return {
    device: wanted === 'addon' ? undefined : await llamaDevice(gpu),
    addon: { unavailable: addon.reason },
  };
}

async function llamaDevice(gpu: Gpu): Promise<DeviceStatus | { readonly unavailable: string }> {
  try {
    const { device } = await llamaBackend(gpu);
    const kernels = device === 'cpu' ? cpuKernels('none', servesAmx()) : undefined;
    return { device, device_name: undefined, missing_gpu: undefined, kernels };
  } catch (error) {
    return { unavailable: errorMessage(error) };
  }
}

function cpuKernels(own: KernelInstructions, uses_amx: boolean): CpuKernels {
  return { own, uses_amx, has_amx: servesAmx(), library: loadedCpuLibrary() };
}
