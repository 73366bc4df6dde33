import type { ComponentChildren } from 'preact';
import { Meter } from '../components/meter.tsx';
import { Notice } from '../components/notice.tsx';
import { CreditLink } from '../credit-link.tsx';
import { formatCount, formatDuration, formatMoney, formatNumber } from '../format.ts';
import type { RunProgress } from './row-run.ts';

/** How far a run is, what it has cost, and what keeps it. */
export function Progress({
  organization_id,
  progress,
  total,
  children,
}: {
  readonly organization_id: string;
  readonly progress: RunProgress;
  readonly total: number;
  /** Buttons for the answers so far. */
  readonly children?: ComponentChildren;
}) {
  const { state, answered, refused, cost_micros, failure, left_ms, kept } = progress;
  const done = answered + refused;
  const facts = [
    `${formatCount(answered, 'row')} answered`,
    ...(refused === 0 ? [] : [`${formatNumber(refused)} with errors`]),
    formatMoney(cost_micros),
    ...(state === 'running' && left_ms !== null && done < total
      ? [`about ${formatDuration(left_ms)} left`]
      : []),
  ];
  return (
    <section class="panel padded playground-part" aria-label="Progress">
      <p class="visually-hidden" role="status">
        {statusOf(progress, total)}
      </p>
      <Meter label="Rows" value={done} limit={total} format={formatNumber} is_goal />
      <p class="number">{facts.join(' · ')}</p>
      {failure !== null && (
        <Notice
          tone={state === 'stopped' ? 'danger' : 'warning'}
          title={failure.message}
          request_id={failure.request_id}
          actions={failure.code === 'insufficient_credit' && <CreditLink organization_id={organization_id} />}
        >
          {state === 'stopped'
            ? 'The run has stopped. The answers so far are kept, and it goes on with the rows that have none.'
            : 'The rows without an answer are asked again.'}
        </Notice>
      )}
      {kept === 'unkept' && (
        <Notice tone="warning" title="This browser does not keep the rows and their answers.">
          They are lost when you leave the page.
        </Notice>
      )}
      {children}
    </section>
  );
}

/** Returns the announcement of changes for screen readers. */
function statusOf({ state, answered, refused }: RunProgress, total: number): string {
  if (state === 'running') return 'Asking';
  if (state === 'pausing') return 'Pausing';
  return answered + refused === total ? 'All rows are done' : 'Paused';
}
