import { type AnswerOf, api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader, Section } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { Tile } from '../components/tile.tsx';
import { Time } from '../components/time.tsx';
import { attempt, showToast } from '../components/toast.tsx';
import { formatCount, formatDuration, formatNumber } from '../format.ts';
import { usePolled } from '../use-polled.ts';

const RUNNING_POLL_MS = 1_000;
const IDLE_POLL_MS = 30_000;

type Audit = AnswerOf<typeof api.operator.audit.get>;
type Result = NonNullable<Audit['last']>;

const OUTCOMES = {
  ok: { tone: 'success', text: 'Everything adds up' },
  violations: { tone: 'danger', text: 'Violations' },
  failed: { tone: 'danger', text: 'Could not be done' },
} as const;

/** The audit of the books: the result of the last one, and a button for one now. */
export default function AuditPage() {
  const audit = usePolled(
    () => call(api.operator.audit.get()),
    [],
    (data) => (data?.running_since_ms == null ? IDLE_POLL_MS : RUNNING_POLL_MS),
  );
  const is_running = audit.data?.running_since_ms != null;
  const begin = () =>
    attempt(async () => {
      const { has_begun } = await call(api.operator.audit.post());
      if (!has_begun) showToast('An audit is already running.');
      await audit.reload();
    });
  return (
    <>
      <PageHeader
        title="Ledger audit"
        description="Checks that every balance, hold and charge adds up. One node runs it every hour, beside the requests. You see the last one of the node that answers this page."
        actions={
          <Button kind="primary" is_busy={is_running} onClick={begin}>
            Audit now
          </Button>
        }
      />
      <LoadedView loaded={audit}>
        {(data) => (
          <div class="stack">
            <Progress audit={data} />
            {data.last === null ? (
              !is_running && (
                <div class="panel">
                  <EmptyState title="No audit yet">
                    This node has run none since it started. One node runs it every hour, and this one can run
                    it now.
                  </EmptyState>
                </div>
              )
            ) : (
              <LastAudit last={data.last} />
            )}
          </div>
        )}
      </LoadedView>
    </>
  );
}

function Progress({ audit: { running_since_ms, now_ms, last } }: { readonly audit: Audit }) {
  return (
    <div role="status">
      {running_since_ms !== null && (
        <div class="panel padded stack">
          <p>
            The audit has been running for {formatDuration(Math.max(0, now_ms - running_since_ms))}.
            {last !== null &&
              ` The last one took ${formatDuration(last.ended_at_ms - last.started_at_ms)}${last.whole ? '' : ', and read only what was new'}.`}
          </p>
          <progress aria-label="The audit is running" />
        </div>
      )}
    </div>
  );
}

function LastAudit({ last }: { readonly last: Result }) {
  const { tone, text } = OUTCOMES[last.outcome];
  const violated = last.checks.filter(({ violations }) => violations > 0).length;
  return (
    <>
      {last.outcome === 'violations' && (
        <Notice tone="danger" title={`${formatCount(violated, 'check')} failed`}>
          Run <code>tds audit</code> on the server: it lists every violation.
        </Notice>
      )}
      {last.outcome === 'failed' && (
        <Notice tone="danger" title="The last audit could not be done">
          The cause is among the <a href="/console/operator/problems">problems</a>.
        </Notice>
      )}
      <dl class="tiles">
        <Tile title="Result" value={<Badge tone={tone}>{text}</Badge>} />
        <Tile title="Ended" value={<Time time_ms={last.ended_at_ms} />} />
        <Tile title="Took" value={formatDuration(last.ended_at_ms - last.started_at_ms)} />
        <Tile title="Read" value={last.whole ? 'The whole history' : 'What was new'} />
      </dl>
      {last.checks.length > 0 && (
        <Section title="Checks">
          <Table
            caption="Checks of the last audit"
            rows={last.checks}
            keyOf={({ name }) => name}
            columns={[
              { title: 'Check', is_name: true, cell: ({ name }) => sentenceOf(name) },
              {
                title: 'Violations',
                is_at_end: true,
                cell: ({ violations }) =>
                  violations === 0 ? (
                    <Badge tone="success">None</Badge>
                  ) : (
                    <Badge tone="danger">
                      {violations >= 100 ? '100 or more' : formatNumber(violations)}
                    </Badge>
                  ),
              },
            ]}
          />
        </Section>
      )}
    </>
  );
}

function sentenceOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
