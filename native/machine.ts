import { errorMessage } from '../src/error-message.ts';
import { servesAmx } from './amx.ts';
import { loadedCpuLibrary } from './cpu-library.ts';
import { addonStatus } from './evaluators/addon/addon-status.ts';
import type { KernelInstructions } from './evaluators/addon/binding.ts';
import type { EvaluatorChoice } from './evaluators/evaluator-names.ts';
import { llamaBackend } from './evaluators/llama/backend.ts';
import type { Gpu } from './gpu.ts';

/** What computes on the CPU. */
export interface CpuKernels {
  /** What the addon's own kernels compute with; `none` where plans are computed without them. */
  readonly own: KernelInstructions;
  /** Whether the CPU has AMX, and whether llama.cpp uses it. */
  readonly has_amx: boolean;
  readonly uses_amx: boolean;
  /** The file of ggml's variant; undefined where the system does not tell. */
  readonly library: string | undefined;
}

/** What plans would be computed on. */
export interface DeviceStatus {
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** The maker's name; undefined where the evaluator does not tell. */
  readonly device_name: string | undefined;
  /** Why a GPU that was wanted is not used. */
  readonly missing_gpu: string | undefined;
  /** Undefined on a GPU. */
  readonly kernels: CpuKernels | undefined;
}

/** What this machine has for evaluating plans. An `unavailable` is the reason, in a sentence. */
export interface MachineStatus {
  /** Undefined where no evaluator that is wanted can be used. */
  readonly device: DeviceStatus | { readonly unavailable: string } | undefined;
  /** The path of the addon, and whether it came compiled; undefined where another evaluator is wanted. */
  readonly addon:
    | { readonly path: string; readonly is_prebuilt: boolean }
    | { readonly unavailable: string }
    | undefined;
}

/**
 * Says what would evaluate plans on this machine, without a model. Builds the addon where it is wanted and not there
 * yet. Loads node-llama-cpp's backend only where it is what serves.
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
