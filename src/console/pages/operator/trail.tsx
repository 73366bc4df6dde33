import { api, call } from '../client.ts';
import { PageHeader } from '../components/page-header.tsx';
import { TrailView } from '../trail-view.tsx';

/** The operators' acts on the service as a whole. */
export default function ServiceTrail() {
  return (
    <>
      <PageHeader
        title="Service trail"
        description="Changes of models, of operators and of accounts. Each organization has a trail of its own."
      />
      <TrailView of="service" inputs={[]} load={(query) => call(api.operator.trail.get({ query }))} />
    </>
  );
}
