import { api, call } from '../client.ts';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import type { PageProps } from '../page.ts';
import { session } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { KeepSwitch } from './keep-switch.tsx';
import { readKeptWork } from './kept-work.ts';
import { Workbench } from './workbench.tsx';

/** Asks about a record without writing code. What is written stays in this browser, or in the page's memory only. */
export default function Playground({ params }: PageProps) {
  const organization_id = params.organization_id ?? '';
  const within = api.organizations({ organization_id });
  const user_id = session.value.state === 'signed_in' ? session.value.user.id : '';
  const scope = `${user_id} ${organization_id}`;
  const loaded = useLoaded(async () => {
    const [keys, projects, models, billing, work] = await Promise.all([
      call(within.keys.get({ query: {} })),
      call(within.projects.get({ query: {} })),
      call(api.models.get()),
      call(within.billing.get()),
      readKeptWork(scope),
    ]);
    const setup = {
      keys: keys.items,
      projects: projects.items,
      models: models.items,
      can_pay: billing.tier > 0 && billing.available_micros > 0,
    };
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
