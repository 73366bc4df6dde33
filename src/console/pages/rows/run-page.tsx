import type { FunctionComponent } from 'preact';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { loadSetup, type Setup } from '../playground/asking-setup.ts';
import { KeepSwitch } from '../playground/keep-switch.tsx';
import { type KeptWork, readKeptWork, scopeOf } from '../playground/kept-work.ts';
import { useLoaded } from '../use-loaded.ts';
import type { KeptRowRun } from './kept-rows.ts';

/** The properties of the workbench of a run over the rows of a file. */
export interface BenchProps<Chosen> {
  readonly organization_id: string;
  readonly setup: Setup;
  /** The name under which the browser keeps it. */
  readonly scope: string;
  readonly work: KeptWork;
  readonly kept: KeptRowRun<Chosen> | null;
}

/** The page of a run over the rows of a file. Rows and answers stay in this browser, or in the page's memory only. */
export function RunPage<Chosen>({
  organization_id,
  scope,
  title,
  description,
  readKept,
  bench: Bench,
}: Pick<BenchProps<Chosen>, 'organization_id' | 'scope'> & {
  readonly title: string;
  readonly description: string;
  readonly readKept: (scope: string) => Promise<KeptRowRun<Chosen> | null>;
  readonly bench: FunctionComponent<BenchProps<Chosen>>;
}) {
  const loaded = useLoaded(async () => {
    const [setup, work, kept] = await Promise.all([
      loadSetup(organization_id),
      readKeptWork(scopeOf(organization_id)),
      readKept(scope),
    ]);
    return { setup, work, kept };
  }, [scope]);
  return (
    <>
      <PageHeader title={title} description={description} actions={<KeepSwitch />} />
      <LoadedView loaded={loaded}>
        {(parts) => <Bench organization_id={organization_id} scope={scope} {...parts} />}
      </LoadedView>
    </>
  );
}
