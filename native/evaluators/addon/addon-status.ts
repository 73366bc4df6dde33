import { AddonUnavailable } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';
import type { KernelInstructions } from './binding.ts';
import { deviceName, loadBinding, nativeBackends } from './load-binding.ts';

/** The addon on this machine, and its device. */
export interface AvailableAddon {
  readonly available: true;
  readonly addon_path: string;
  /** True if it came compiled, without the need for a compiler. */
  readonly is_prebuilt: boolean;
  readonly library_directory: string;
  /** `cpu`, `cuda`, `metal` or `vulkan`, and its maker's name. */
  readonly device: string;
  readonly device_name: string;
  /** The reason for a wanted GPU that is not used. */
  readonly missing_gpu: string | undefined;
  /** The instructions of the addon's kernels; `none` on a GPU. */
  readonly kernels: KernelInstructions;
  /** True if llama.cpp multiplies matrices by AMX. */
  readonly uses_amx: boolean;
}

/** The addon on this machine, or the reason why it is unavailable. */
export type AddonStatus = AvailableAddon | { readonly available: false; readonly reason: string };

/**
 * Builds and loads the addon if possible, and otherwise returns the reason. The first call in a process loads ggml's
 * backends. Tests give another folder for them.
 */
export async function addonStatus(gpu: Gpu = 'auto', backends_directory?: string): Promise<AddonStatus> {
  try {
    const { binding, built } = await loadBinding(gpu);
    const backends = nativeBackends(built.library);
    const machine = binding.inspect({
      ...backends,
      library_directory: backends_directory ?? backends.library_directory,
    });
    return {
      available: true,
      addon_path: built.path,
      is_prebuilt: built.is_prebuilt,
      library_directory: built.library.directory,
      device: deviceName(machine.device),
      device_name: machine.description,
      missing_gpu: machine.missing_gpu || undefined,
      kernels: machine.kernels,
      uses_amx: machine.uses_amx,
    };
  } catch (error) {
    if (!(error instanceof AddonUnavailable)) throw error;
    return { available: false, reason: error.message };
  }
}
