import { availableParallelism } from 'node:os';

/** Threads that compute while other work needs the machine, and while none does. */
export interface ComputingThreads {
  readonly fewest: number;
  readonly most: number;
}

/**
 * Returns the number of computing threads. 0 or undefined takes all cores while nothing else needs them, and otherwise
 * leaves one for other work and the event loop. `bench/engine-threads.ts` compares the numbers.
 */
export function computingThreads(
  threads: number | undefined,
  cores: number = availableParallelism(),
): ComputingThreads {
  return threads ? { fewest: threads, most: threads } : { fewest: Math.max(1, cores - 1), most: cores };
}
