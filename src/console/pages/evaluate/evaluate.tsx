import type { PageProps } from '../page.ts';
import { scopeOf } from '../playground/kept-work.ts';
import { readKeptRun } from '../rows/kept-rows.ts';
import { RunPage } from '../rows/run-page.tsx';
import { EvaluationWorkbench } from './evaluation-workbench.tsx';

/** Measures answers on records whose right answers are known. */
export default function Evaluate({ params: { organization_id = '' } }: PageProps) {
  return (
    <RunPage
      organization_id={organization_id}
      // The rows of a person's evaluation are beside those of their batch.
      scope={`${scopeOf(organization_id)} evaluation`}
      title="Evaluate"
      description="Measure the answers on records whose right answers you know. Each record is billed like any request."
      readKept={(scope) => readKeptRun('evaluations', scope)}
      bench={EvaluationWorkbench}
    />
  );
}
