import { availableParallelism } from 'node:os';

/**
 * Returns the number of computing threads. 0 or undefined leaves one core for the event loop, which
 * `bench/engine-threads.ts` compares with other numbers.
 */
export function computingThreads(threads: number | undefined): number {
  return threads || Math.max(1, availableParallelism() - 1);
}
