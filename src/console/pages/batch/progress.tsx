import { Button } from '../components/button.tsx';
import { Meter } from '../components/meter.tsx';
import { Notice } from '../components/notice.tsx';
import { CreditLink } from '../credit-link.tsx';
import { formatCount, formatDuration, formatMoney, formatNumber } from '../format.ts';
import { keeps_work } from '../playground/kept-work.ts';
import type { BatchProgress } from './batch-run.ts';
import { type AnsweredRows, download } from './download.ts';

/** How far the batch is, what it has cost, what keeps it, and its download. */
export function Progress({
  organization_id,
  progress,
  rows,
}: {
  readonly organization_id: string;
  readonly progress: BatchProgress;
  readonly rows: AnsweredRows;
}) {
  const { state, answered, refused, cost_micros, failure, left_ms, is_kept } = progress;
  const total = rows.file.rows.length;
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
      {!(is_kept && keeps_work.value) && (
        <Notice tone="warning" title="This browser does not keep the rows and their answers.">
          Download the answers before you leave the page.
        </Notice>
      )}
      <div class="row">
        <Button size="small" onClick={() => download(rows, 'csv')}>
          Download CSV
        </Button>
        <Button size="small" onClick={() => download(rows, 'jsonl')}>
          Download JSONL
        </Button>
      </div>
    </section>
  );
}

/** Returns the announcement of changes for screen readers. */
function statusOf({ state, answered, refused }: BatchProgress, total: number): string {
  if (state === 'running') return 'Asking';
  if (state === 'pausing') return 'Pausing';
  return answered + refused === total ? 'All rows are done' : 'Paused';
}
