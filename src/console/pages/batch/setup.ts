import type { RunSetup } from '../rows/run-setup.ts';

/** The choices for a batch, beside its rows. */
export interface BatchSetup extends RunSetup {
  /** The column with the record; null for all columns as one object. */
  readonly column: string | null;
}
