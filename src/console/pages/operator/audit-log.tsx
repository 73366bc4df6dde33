import { AuditLogView } from '../audit-log-view.tsx';
import { api, call } from '../client.ts';
import { PageHeader } from '../components/page-header.tsx';

/** The operators' acts on the service as a whole. */
export default function ServiceAuditLog() {
  return (
    <>
      <PageHeader
        title="Service audit log"
        description="Changes of models, of operators and of accounts. Each organization has an audit log of its own."
      />
      <AuditLogView of="service" inputs={[]} load={(query) => call(api.operator.trail.get({ query }))} />
    </>
  );
}
