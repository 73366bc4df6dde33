import { Badge } from '../components/badge.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader, Section } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { formatCount, formatMoney } from '../format.ts';
import { useInbox } from './use-inbox.ts';

type Inbox = NonNullable<ReturnType<typeof useInbox>['data']>;

/** All that waits for the operator: payments and payment events, failing models and upstreams, failures of this node. */
export default function OperatorInbox() {
  const inbox = useInbox();
  return (
    <>
      <PageHeader
        title="Inbox"
        description="Everything that needs you, across all organizations. It updates by itself."
      />
      <LoadedView loaded={inbox}>
        {(found) =>
          found.count === 0 ? (
            <div class="panel">
              <EmptyState title="Nothing needs you">
                Payments to confirm, payment events to decide about, failing models and upstreams, late
                backups and problems appear here.
              </EmptyState>
            </div>
          ) : (
            <div class="stack">
              <Payments payments={found.payments} />
              <UnresolvedEvents count={found.unresolved_events} />
              <Failing models={found.models} upstreams={found.upstreams} />
              <Failures backups={found.backups} problems={found.problems} />
            </div>
          )
        }
      </LoadedView>
    </>
  );
}

function Payments({ payments }: Pick<Inbox, 'payments'>) {
  if (payments.length === 0) return null;
  return (
    <Section
      title="Payments to confirm"
      description="Confirm each on its organization's page once the money is there."
    >
      <Table
        caption="Payments to confirm"
        rows={payments}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Organization',
            is_name: true,
            cell: ({ organization_id, organization_name }) => (
              <a class="breakable" href={`/console/operator/organizations/${organization_id}`}>
                {organization_name}
              </a>
            ),
          },
          { title: 'Payment', cell: ({ id }) => <code class="wrap">{id}</code> },
          { title: 'Started', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
          { title: 'Amount', is_at_end: true, cell: ({ amount_micros }) => formatMoney(amount_micros) },
        ]}
      />
    </Section>
  );
}

function UnresolvedEvents({ count }: { readonly count: number }) {
  if (count === 0) return null;
  return (
    <Notice
      tone="warning"
      title={formatCount(count, 'payment event fits no payment here', 'payment events fit no payment here')}
    >
      Credit of customers waits for you. <code>tds credit events</code> lists the events;{' '}
      <code>tds credit assign</code> or <code>tds credit dismiss</code> ends each.
    </Notice>
  );
}

function Failing({ models, upstreams }: Pick<Inbox, 'models' | 'upstreams'>) {
  const rows = [
    ...models.map(({ id, error }) => ({ id, what: error })),
    ...upstreams.map(({ model_id, address }) => ({ id: model_id, what: `${address} does not answer` })),
  ];
  if (rows.length === 0) return null;
  return (
    <Section title="Models that fail" description="Clients of these get errors, or fewer answers.">
      <Table
        caption="Models that fail"
        rows={rows}
        keyOf={({ id, what }) => `${id} ${what}`}
        columns={[
          { title: 'Model', is_name: true, cell: ({ id }) => <a href="/console/operator/models">{id}</a> },
          { title: 'Failure', cell: ({ what }) => <span class="breakable">{what}</span> },
        ]}
      />
    </Section>
  );
}

function Failures({ backups, problems }: Pick<Inbox, 'backups' | 'problems'>) {
  const rows = [
    { name: 'Backups that failed or are late', ...backups },
    { name: 'Problems', ...problems },
  ].filter(({ count }) => count > 0);
  if (rows.length === 0) return null;
  return (
    <Section title="Failures of this node" description="In the last 24 hours. Each node has its own.">
      <Table
        caption="Failures of this node"
        rows={rows}
        keyOf={({ name }) => name}
        columns={[
          {
            title: 'What',
            is_name: true,
            cell: ({ name }) => <a href="/console/operator/problems">{name}</a>,
          },
          { title: 'Number', cell: ({ count }) => <Badge tone="danger">{String(count)}</Badge> },
          { title: 'Newest', cell: ({ newest_at_ms }) => <Time time_ms={newest_at_ms} none="Unknown" /> },
        ]}
      />
    </Section>
  );
}
