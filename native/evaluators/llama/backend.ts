import { getLlama, type Llama, LlamaLogLevel, type LlamaOptions } from 'node-llama-cpp';
import { DeviceUnavailable } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';

/** llama.cpp's backend, with the first error that it has logged. */
export interface LlamaBackend {
  readonly llama: Llama;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /**
   * The first error in llama.cpp's log since the last call, or undefined. The log is the only place where llama.cpp
   * says why it refuses a file.
   */
  takeLoggedError(): string | undefined;
}

const backends = new Map<Gpu, Promise<LlamaBackend>>();

async function loadBinary(options: LlamaOptions): Promise<Llama> {
  try {
    return await getLlama(options);
  } catch (cause) {
    const device = typeof options.gpu === 'string' && options.gpu !== 'auto' ? ` for ${options.gpu}` : '';
    throw new DeviceUnavailable(`node-llama-cpp ships no binary${device} that this machine can run.`, {
      cause,
    });
  }
}

async function startBackend(gpu: Gpu): Promise<LlamaBackend> {
  let logged_error: string | undefined;
  const llama = await loadBinary({
    build: 'never',
    gpu,
    // 0 sets no bound: each context gets exactly the threads that it asks for.
    maxThreads: 0,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, message) => {
      // The first line names the cause; later lines only say that loading failed.
      logged_error ??= message.trim();
    },
  });
  return {
    llama,
    device: llama.gpu === false ? 'cpu' : llama.gpu,
    takeLoggedError() {
      const taken = logged_error;
      logged_error = undefined;
      return taken;
    },
  };
}

/**
 * The backend for a device. A process has one, which stays until the process ends, because llama.cpp's cannot be started
 * again once it is freed. Rejects with `DeviceUnavailable` when the device or the platform's prebuilt binary is missing;
 * the next call tries again.
 */
export function llamaBackend(gpu: Gpu): Promise<LlamaBackend> {
  const started = backends.get(gpu);
  if (started !== undefined) return started;
  const starting = startBackend(gpu);
  backends.set(gpu, starting);
  starting.then(
    ({ llama }) => {
      // Whoever asks by name for the device that `auto` found shares its backend. A second one would take over the log.
      if (!backends.has(llama.gpu)) backends.set(llama.gpu, starting);
    },
    () => backends.delete(gpu),
  );
  return starting;
}
