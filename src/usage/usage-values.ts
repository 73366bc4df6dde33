import type { UsageValues } from '../store/usage-reader.ts';
import type { UsageRow } from '../store/usage-row.ts';

/** Returns the values of such rows to filter by, each value once and in order. */
export function valuesIn(
  rows: readonly Pick<UsageRow, 'model' | 'mode' | 'endpoint' | 'status'>[],
): UsageValues {
  const each = <T>(of: (row: (typeof rows)[number]) => T) => [...new Set(rows.map(of))].sort();
  return {
    models: each((row) => row.model),
    modes: each((row) => row.mode),
    endpoints: each((row) => row.endpoint),
    statuses: each((row) => row.status),
  };
}
