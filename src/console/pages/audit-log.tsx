import { AuditLogView } from './audit-log-view.tsx';
import { api, call } from './client.ts';
import { PageHeader } from './components/page-header.tsx';
import type { PageProps } from './page.ts';

/** The organization's audit log, for its owners. */
export default function AuditLog({ params: { organization_id = '' } }: PageProps) {
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Who changed what, and when. It holds no keys, records or passwords."
      />
      <AuditLogView
        of="organization"
        inputs={[organization_id]}
        load={(query) => call(api.organizations({ organization_id }).trail.get({ query }))}
      />
    </>
  );
}
