import { Badge } from '../components/badge.tsx';
import { Section } from '../components/page-header.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { formatMoney } from '../format.ts';
import type { BillingFacts } from './facts.ts';

const STATUSES: Readonly<Record<string, 'success' | 'warning'>> = {
  completed: 'success',
  pending: 'warning',
};

/** The refunds, and their reversals. */
export function Refunds({ refunds }: Pick<BillingFacts, 'refunds'>) {
  return (
    <Section title="Refunds" description="A refund takes its amount from your credit.">
      {refunds.length === 0 ? (
        <p class="muted">No refunds yet.</p>
      ) : (
        <Table
          caption="Refunds"
          rows={refunds}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'What',
              is_name: true,
              cell: ({ is_reversal }) => (is_reversal ? 'Refund taken back' : 'Refund'),
            },
            { title: 'Id', cell: ({ id }) => <code>{id}</code> },
            {
              title: 'Status',
              cell: ({ status }) => <Badge tone={STATUSES[status] ?? 'neutral'}>{status}</Badge>,
            },
            {
              title: 'Time',
              cell: ({ settled_at_ms, created_at_ms }) => <Time time_ms={settled_at_ms ?? created_at_ms} />,
            },
            {
              title: 'Amount',
              is_at_end: true,
              cell: ({ is_reversal, amount_micros }) =>
                formatMoney(is_reversal ? amount_micros : -amount_micros),
            },
          ]}
        />
      )}
    </Section>
  );
}
