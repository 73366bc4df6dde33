import type { PageProps } from '../page.ts';
import { scopeOf } from '../playground/kept-work.ts';
import { readKeptRun } from '../rows/kept-rows.ts';
import { RunPage } from '../rows/run-page.tsx';
import { BatchWorkbench } from './batch-workbench.tsx';

/** Asks about every row of a file. */
export default function Batch({ params: { organization_id = '' } }: PageProps) {
  return (
    <RunPage
      organization_id={organization_id}
      scope={scopeOf(organization_id)}
      title="Batch"
      description="Ask the same questions about every row of a file. Each row is billed like any request."
      readKept={(scope) => readKeptRun('batches', scope)}
      bench={BatchWorkbench}
    />
  );
}
