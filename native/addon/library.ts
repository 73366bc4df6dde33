import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROJECT_ROOT } from '../../src/files/project-root.ts';
import type { Gpu } from '../gpu.ts';

/** The llama.cpp that a platform package of node-llama-cpp ships. */
export interface LlamaLibrary {
  /** The folder of the libraries and of ggml's backends. */
  readonly directory: string;
  /** The names of the libraries to link. */
  readonly link: readonly string[];
  /** A folder with the GPU's backend for an older version of its runtime. */
  readonly fallback_directory: string | undefined;
  /** The GPU that is to be used, or false for the CPU. */
  readonly gpu: Exclude<Gpu, 'auto'>;
}

interface Candidate {
  readonly package: string;
  readonly gpu: LlamaLibrary['gpu'];
  /** True if the machine seems to have the device. */
  readonly present: boolean;
}

function candidates(): readonly Candidate[] {
  const { arch, platform } = process;
  if (platform === 'darwin') {
    return arch === 'arm64'
      ? [{ package: 'mac-arm64-metal', gpu: 'metal', present: true }]
      : [{ package: 'mac-x64', gpu: false, present: true }];
  }
  if (platform !== 'linux') return [];
  return [
    { package: `linux-${arch}-cuda`, gpu: 'cuda', present: existsSync('/proc/driver/nvidia/version') },
    { package: `linux-${arch}-vulkan`, gpu: 'vulkan', present: false },
    { package: `linux-${arch}`, gpu: false, present: true },
  ];
}

/**
 * `libllama.v0.5.0.so`, `libllama.cuda.v0.5.0.so`, `libggml-base.so`, …; backends are not linked but loaded by name.
 */
const LINKED = /^lib(llama|ggml|ggml-base)(\.(?!so$|dylib$)[^-]+)?\.(so|dylib)$/;

/** Returns the folder of a platform package's binaries; undefined if the package is not installed. */
function binaries(name: string, ...folders: readonly string[]): string | undefined {
  try {
    const entry = Bun.resolveSync(
      `@node-llama-cpp/${name}`,
      dirname(Bun.resolveSync('node-llama-cpp', PROJECT_ROOT)),
    );
    const directory = join(dirname(dirname(entry)), 'bins', ...folders);
    return existsSync(directory) ? directory : undefined;
  } catch {
    // Nothing is lost: a missing package has no library, and its callers report that.
    return undefined;
  }
}

function packageLibrary(name: string, gpu: LlamaLibrary['gpu']): LlamaLibrary | undefined {
  const directory = binaries(name, name);
  if (directory === undefined) return undefined;
  const link = readdirSync(directory).filter((file) => LINKED.test(file));
  if (link.length !== 3) return undefined;
  // CUDA's backend exists for two versions of its runtime. The older one is a separate package.
  return { directory, fallback_directory: binaries(`${name}-ext`, name, 'fallback'), link, gpu };
}

/**
 * Returns the libraries for a device; undefined if no installed package has them. `auto` chooses a GPU only if the
 * machine has one. On a Mac, Metal's package also serves the CPU.
 */
export function findLibrary(gpu: Gpu): LlamaLibrary | undefined {
  for (const candidate of candidates()) {
    const serves = gpu === candidate.gpu || (gpu === false && candidate.gpu === 'metal');
    if (gpu === 'auto' ? !candidate.present : !serves) continue;
    const library = packageLibrary(candidate.package, gpu !== false && candidate.gpu);
    if (library !== undefined) return library;
  }
  return undefined;
}
