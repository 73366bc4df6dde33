import { api, call } from '../client.ts';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import type { PageProps } from '../page.ts';
import { useLoaded } from '../use-loaded.ts';
import { Workbench } from './workbench.tsx';

/** A page to ask about a record without writing code. The record is only in this page's memory. */
export default function Playground({ params }: PageProps) {
  const organization_id = params.organization_id ?? '';
  const within = api.organizations({ organization_id });
  const setup = useLoaded(async () => {
    const [keys, projects, models, billing] = await Promise.all([
      call(within.keys.get({ query: {} })),
      call(within.projects.get({ query: {} })),
      call(api.models.get()),
      call(within.billing.get()),
    ]);
    return {
      keys: keys.items,
      projects: projects.items,
      models: models.items,
      can_pay: billing.tier > 0 && billing.available_micros > 0,
    };
  }, [organization_id]);
  return (
    <>
      <PageHeader
        title="Playground"
        description="Ask typed questions about a record. Runs are billed like any request."
      />
      <LoadedView loaded={setup}>
        {(loaded) => <Workbench organization_id={organization_id} setup={loaded} />}
      </LoadedView>
    </>
  );
}
