import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import type { PageProps } from '../page.ts';
import { loadSetup } from '../playground/asking-setup.ts';
import { KeepSwitch } from '../playground/keep-switch.tsx';
import { readKeptWork, scopeOf } from '../playground/kept-work.ts';
import { useLoaded } from '../use-loaded.ts';
import { BatchWorkbench } from './batch-workbench.tsx';
import { readKeptBatch } from './kept-batch.ts';

/** Asks about every row of a file. Rows and answers stay in this browser, or in the page's memory only. */
export default function Batch({ params }: PageProps) {
  const organization_id = params.organization_id ?? '';
  const scope = scopeOf(organization_id);
  const loaded = useLoaded(async () => {
    const [setup, work, kept] = await Promise.all([
      loadSetup(organization_id),
      readKeptWork(scope),
      readKeptBatch(scope),
    ]);
    return { setup, work, kept };
  }, [scope]);
  return (
    <>
      <PageHeader
        title="Batch"
        description="Ask the same questions about every row of a file. Each row is billed like any request."
        actions={<KeepSwitch />}
      />
      <LoadedView loaded={loaded}>
        {({ setup, work, kept }) => (
          <BatchWorkbench
            organization_id={organization_id}
            setup={setup}
            scope={scope}
            work={work}
            kept={kept}
          />
        )}
      </LoadedView>
    </>
  );
}
