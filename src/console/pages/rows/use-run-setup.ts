import { useEffect, useState } from 'preact/hooks';
import { keeps_work } from '../playground/kept-work.ts';
import type { RowFile } from './row-file.ts';
import { newRunKey, type RunSetup } from './run-setup.ts';

interface Keeping<Setup> {
  readonly file: RowFile | null;
  /** The name under which the browser keeps it. */
  readonly scope: string;
  readonly keep: (scope: string, setup: Setup) => Promise<unknown>;
}

/**
 * Returns the choices for a run over a file's rows, and a function that changes some. The browser keeps them beside the
 * file. Each change begins another run: rows that were sent with other choices are not those of this one.
 */
export function useRunSetup<Setup extends RunSetup>(
  first: () => Setup,
  { file, scope, keep }: Keeping<Setup>,
): readonly [chosen: Setup, choose: (change: Partial<Omit<Setup, 'run_key'>>) => void] {
  const [chosen, setChosen] = useState(first);
  const is_kept = keeps_work.value;
  useEffect(() => {
    if (is_kept && file !== null) void keep(scope, chosen);
  }, [is_kept, scope, chosen, file]);
  return [chosen, (change) => setChosen({ ...chosen, ...change, run_key: newRunKey() })];
}
