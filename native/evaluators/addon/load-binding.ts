import { createRequire } from 'node:module';
import { type BuiltAddon, buildAddon, rebuildAddon } from '../../addon/build.ts';
import type { LlamaLibrary } from '../../addon/library.ts';
import { AddonUnavailable } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';
import { type AddonBinding, isAddonBinding, type NativeBackends } from './binding.ts';

/** Loads the addon's functions, and builds a missing addon first. Throws `AddonUnavailable` if it cannot. */
export async function loadBinding(
  gpu: Gpu,
  onBuild?: () => void,
): Promise<{ binding: AddonBinding; built: BuiltAddon }> {
  const built = await buildAddon(gpu, onBuild);
  try {
    return { binding: requireBinding(built.path), built };
  } catch (error) {
    if (built.is_prebuilt) throw error;
    // A damaged file is built again. If that cannot be loaded either, the fault is another.
    const rebuild = rebuilds.get(built.path) ?? rebuildAddon(built, onBuild);
    rebuilds.set(built.path, rebuild);
    // A compiler may be installed meanwhile, so a failed rebuild is begun again.
    rebuild.catch(() => rebuilds.delete(built.path));
    await rebuild;
    return { binding: requireBinding(built.path), built };
  }
}

/** The rebuilds of addons that this process could not load, by path: one each, under way or done. */
const rebuilds = new Map<string, Promise<void>>();

function requireBinding(path: string): AddonBinding {
  let binding: unknown;
  try {
    binding = createRequire(import.meta.url)(path);
  } catch (cause) {
    throw new AddonUnavailable(`The addon ${path} could not be loaded.`, { cause });
  }
  if (!isAddonBinding(binding)) throw new AddonUnavailable(`The addon ${path} is not ours.`);
  return binding;
}

/** Returns the addon's options for a library. */
export function nativeBackends({ directory, fallback_directory, gpu }: LlamaLibrary): NativeBackends {
  return {
    library_directory: directory,
    fallback_directory: fallback_directory ?? '',
    gpu: gpu === false ? '' : gpu,
  };
}

/** Returns our name of a device, from ggml's name of its backend: `cpu`, `cuda`, `metal` or `vulkan`. */
export function deviceName(backend: string): string {
  const name = backend.toLowerCase();
  return name === 'mtl' ? 'metal' : name;
}
