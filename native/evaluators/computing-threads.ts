import { availableParallelism } from 'node:os';

/** The threads that compute: those asked for; 0 or undefined leaves one core for the event loop. */
export function computingThreads(threads: number | undefined): number {
  return threads || Math.max(1, availableParallelism() - 1);
}
