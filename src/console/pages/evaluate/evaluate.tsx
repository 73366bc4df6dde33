import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import type { PageProps } from '../page.ts';
import { loadSetup } from '../playground/asking-setup.ts';
import { KeepSwitch } from '../playground/keep-switch.tsx';
import { readKeptWork, scopeOf } from '../playground/kept-work.ts';
import { useLoaded } from '../use-loaded.ts';
import { EvaluationWorkbench } from './evaluation-workbench.tsx';
import { evaluationScope, readKeptEvaluation } from './kept-evaluation.ts';

/** Measures answers on records whose right answers are known. Rows and answers stay in this browser. */
export default function Evaluate({ params }: PageProps) {
  const organization_id = params.organization_id ?? '';
  const scope = scopeOf(organization_id);
  const loaded = useLoaded(async () => {
    const [setup, work, kept] = await Promise.all([
      loadSetup(organization_id),
      readKeptWork(scope),
      readKeptEvaluation(evaluationScope(scope)),
    ]);
    return { setup, work, kept };
  }, [scope]);
  return (
    <>
      <PageHeader
        title="Evaluate"
        description="Measure the answers on records whose right answers you know. Each record is billed like any request."
        actions={<KeepSwitch />}
      />
      <LoadedView loaded={loaded}>
        {({ setup, work, kept }) => (
          <EvaluationWorkbench
            organization_id={organization_id}
            setup={setup}
            scope={evaluationScope(scope)}
            work={work}
            kept={kept}
          />
        )}
      </LoadedView>
    </>
  );
}
