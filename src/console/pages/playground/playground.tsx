import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import type { PageProps } from '../page.ts';
import { useLoaded } from '../use-loaded.ts';
import { loadSetup } from './asking-setup.ts';
import { KeepSwitch } from './keep-switch.tsx';
import { readKeptWork, scopeOf } from './kept-work.ts';
import { Workbench } from './workbench.tsx';

/** Asks about a record without writing code. What is written stays in this browser, or in the page's memory only. */
export default function Playground({ params }: PageProps) {
  const organization_id = params.organization_id ?? '';
  const scope = scopeOf(organization_id);
  const loaded = useLoaded(async () => {
    const [setup, work] = await Promise.all([loadSetup(organization_id), readKeptWork(scope)]);
    return { setup, work };
  }, [scope]);
  return (
    <>
      <PageHeader
        title="Playground"
        description="Ask typed questions about a record. Runs are billed like any request."
        actions={<KeepSwitch />}
      />
      <LoadedView loaded={loaded}>
        {({ setup, work }) => (
          <Workbench organization_id={organization_id} setup={setup} scope={scope} work={work} />
        )}
      </LoadedView>
    </>
  );
}
