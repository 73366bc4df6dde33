import { useState } from 'preact/hooks';
import { newRunKey, type RunSetup } from './run-setup.ts';

/**
 * Returns the choices for a run over a file's rows, and a function that changes some. Each change begins another run:
 * rows that were sent with other choices are not those of this one. `note` adds what became known of a run, if it is
 * still that one.
 */
export function useRunSetup<Setup extends RunSetup>(
  first: () => Setup,
): readonly [
  chosen: Setup,
  choose: (change: Partial<Omit<Setup, 'run_key'>>) => void,
  note: (run_key: string, known: Partial<Omit<Setup, keyof RunSetup>>) => void,
] {
  const [chosen, setChosen] = useState(first);
  return [
    chosen,
    (change) => setChosen({ ...chosen, ...change, run_key: newRunKey() }),
    (run_key, known) => setChosen((now) => (now.run_key === run_key ? { ...now, ...known } : now)),
  ];
}
