import { api, call } from './client.ts';
import { PageHeader } from './components/page-header.tsx';
import type { PageProps } from './page.ts';
import { TrailView } from './trail-view.tsx';

/** The organization's audit trail, for its owners. */
export default function Trail({ params: { organization_id = '' } }: PageProps) {
  return (
    <>
      <PageHeader
        title="Audit trail"
        description="Who changed what, and when. It holds no keys, records or passwords."
      />
      <TrailView
        of="organization"
        inputs={[organization_id]}
        load={(query) => call(api.organizations({ organization_id }).trail.get({ query }))}
      />
    </>
  );
}
