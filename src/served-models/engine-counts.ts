import type { EvaluatorCounts } from '../../native/engine.ts';

/** Returns the counters of closed engines with those of the present one, whose bytes alone are in use. */
export function countsWithEarlier(
  earlier: EvaluatorCounts | undefined,
  present: EvaluatorCounts | undefined,
): EvaluatorCounts | undefined {
  if (earlier === undefined || present === undefined) return present ?? earlier;
  const { batches } = present;
  return {
    ...present,
    decodes: earlier.decodes + present.decodes,
    read_tokens: earlier.read_tokens + present.read_tokens,
    reused_tokens: earlier.reused_tokens + present.reused_tokens,
    ...(batches === undefined
      ? {}
      : {
          batches: {
            by_size: batches.by_size.map((count, size) => count + (earlier.batches?.by_size[size] ?? 0)),
            tokens: batches.tokens + (earlier.batches?.tokens ?? 0),
          },
        }),
  };
}

/** Returns the counters of an engine once it is closed. */
export function countsOfClosed(counts: EvaluatorCounts): EvaluatorCounts {
  return {
    ...counts,
    kept_prefix_bytes: 0,
    ...(counts.kv_cache_bytes === undefined ? {} : { kv_cache_bytes: 0 }),
  };
}
