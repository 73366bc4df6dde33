import { CopyText } from '../components/copy-button.tsx';
import { EmptyState } from '../components/states.tsx';
import { runName } from './asked.ts';
import type { Run } from './use-runs.ts';

/** The bodies of the responses as JSON, as a program gets them. */
export function RawResponse({ runs }: { readonly runs: readonly Run[] }) {
  const answered = runs.flatMap((run) =>
    run.outcome.state === 'answered' ? [{ name: runName(run, runs), ...run.outcome }] : [],
  );
  if (answered.length === 0) {
    return (
      <div class="panel">
        <EmptyState title="No response yet">Run the request to see what a program would receive.</EmptyState>
      </div>
    );
  }
  return (
    <>
      {answered.map(({ name, decision, request_id }) => (
        <section key={name} class="panel padded playground-part" aria-label={`Response: ${name}`}>
          <header class="playground-part-head">
            <h2>{name}</h2>
            {request_id !== null && <code class="muted">{request_id}</code>}
          </header>
          <div class="playground-code">
            <CopyText text={JSON.stringify(decision, null, 2)} is_block />
          </div>
        </section>
      ))}
    </>
  );
}
