/** Aborted for good when the process is about to end, which waits for no compiler. */
const ending = new AbortController();

/** Aborted when nothing is compiled any more. */
export const build_stop: AbortSignal = ending.signal;

/** Ends the compilers of this process, which is about to end. Builds reject, and no other evaluator is opened. */
export function stopBuilds(): void {
  ending.abort();
}
