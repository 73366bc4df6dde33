import { availableParallelism } from 'node:os';

/** The largest number of computing threads: ggml's own (`GGML_MAX_N_THREADS`). */
export const THREADS_MAX = 512;

/** Threads that compute while other work needs the machine, and while none does. */
export interface ComputingThreads {
  readonly fewest: number;
  readonly most: number;
}

/**
 * Returns the number of computing threads. 0 or undefined takes all cores while nothing else needs them, and otherwise
 * leaves one for other work and the event loop. Only Linux tells what else needs them. `bench/engine-threads.ts`
 * compares the numbers.
 */
export function computingThreads(
  threads: number | undefined,
  cores: number = availableParallelism(),
  platform: NodeJS.Platform = process.platform,
): ComputingThreads {
  if (threads) return { fewest: threads, most: threads };
  const all = Math.min(cores, THREADS_MAX);
  const fewest = Math.max(1, all - 1);
  return { fewest, most: platform === 'linux' ? all : fewest };
}
