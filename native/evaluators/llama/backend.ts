import { getLlama, type Llama, LlamaLogLevel, type LlamaOptions } from 'node-llama-cpp';
import { DeviceUnavailable } from '../../setup-error.ts';

/** Which device to compute on: the best that there is, the CPU only, or one by name. */
export type Gpu = 'auto' | false | 'cuda' | 'metal' | 'vulkan';

/** llama.cpp's backend as this process has it, with the last complaint that it made. */
export interface LlamaBackend {
  readonly llama: Llama;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** llama.cpp says why it refuses a file only in its log; the line and an end to it are taken from there. */
  takeComplaint(): string | undefined;
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
  let complaint: string | undefined;
  const llama = await loadBinary({
    build: 'never',
    gpu,
    // The number of threads is then exactly what a context asks for.
    maxThreads: 0,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, message) => {
      // The first line names the cause; those after it only say that loading failed.
      complaint ??= message.trim();
    },
  });
  return {
    llama,
    device: llama.gpu === false ? 'cpu' : llama.gpu,
    takeComplaint() {
      const taken = complaint;
      complaint = undefined;
      return taken;
    },
  };
}

/**
 * The backend for a device. It is one per process and stays until the process ends: once freed, llama.cpp's cannot be
 * started again. Rejects with `DeviceUnavailable` when the device or the platform's prebuilt binary is missing; the next
 * call tries again.
 */
export function llamaBackend(gpu: Gpu): Promise<LlamaBackend> {
  const started = backends.get(gpu);
  if (started !== undefined) return started;
  const starting = startBackend(gpu);
  backends.set(gpu, starting);
  starting.then(
    ({ llama }) => {
      // What `auto` has found serves who asks for it by name: a second instance would take the first one's log away.
      if (!backends.has(llama.gpu)) backends.set(llama.gpu, starting);
    },
    () => backends.delete(gpu),
  );
  return starting;
}
