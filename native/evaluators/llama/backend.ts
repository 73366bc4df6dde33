import { getLlama, type Llama, LlamaLogLevel, type LlamaOptions } from 'node-llama-cpp';
import { DeviceUnavailable } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';

/** llama.cpp's backend, with the first error that it has logged. */
export interface LlamaBackend {
  readonly llama: Llama;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /**
   * Returns the first error in llama.cpp's log since the last call, or undefined. Only the log has the reason for a
   * refused file.
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
    // 0 is no bound: each context gets exactly the threads that it asks for.
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
 * Resolves with the backend for a device. A process has one until it ends, because llama.cpp's cannot be restarted.
 * Rejects with `DeviceUnavailable` if the device or the platform's prebuilt binary is missing. The next call tries
 * again.
 */
export function llamaBackend(gpu: Gpu): Promise<LlamaBackend> {
  const started = backends.get(gpu);
  if (started !== undefined) return started;
  const starting = startBackend(gpu);
  backends.set(gpu, starting);
  starting.then(
    ({ llama }) => {
      // The device that `auto` found is also stored by name, because a second backend would take over the log.
      if (!backends.has(llama.gpu)) backends.set(llama.gpu, starting);
    },
    () => backends.delete(gpu),
  );
  return starting;
}
