import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { EmptyState } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { formatMoney } from '../format.ts';
import type { OrganizationProps, WholeOrganization } from './whole-organization.ts';

/** The provider whose payments the operator confirms; others confirm their own. */
const MANUAL = 'manual';

type Payment = WholeOrganization['pending'][number];

/** The payments that wait for their confirmation. */
export function PendingPayments({ organization, onChange }: OrganizationProps) {
  const [payment, setPayment] = useState<Payment>();
  const amount = formatMoney(payment?.amount_micros ?? 0);
  return (
    <>
      <Table
        caption="Payments that wait"
        rows={organization.pending}
        keyOf={({ id }) => id}
        empty={<EmptyState title="No open payments">Top-ups show up here until they are paid.</EmptyState>}
        columns={[
          { title: 'Payment', is_name: true, cell: ({ id }) => <code class="wrap">{id}</code> },
          { title: 'Kind', cell: ({ kind }) => (kind === 'refund' ? 'Refund' : 'Top-up') },
          { title: 'Through', cell: ({ provider }) => provider },
          { title: 'Started', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
          { title: 'Amount', is_at_end: true, cell: ({ amount_micros }) => formatMoney(amount_micros) },
          {
            ...ACTIONS,
            cell: (one) =>
              one.provider === MANUAL && (
                <Button
                  size="small"
                  label={`Confirm the payment of ${formatMoney(one.amount_micros)}`}
                  onClick={() => setPayment(one)}
                >
                  Confirm…
                </Button>
              ),
          },
        ]}
      />
      <ConfirmDialog
        title={`Confirm ${amount}?`}
        action={`Confirm ${amount}`}
        is_dangerous={false}
        is_open={payment !== undefined}
        onClose={() => setPayment(undefined)}
        onConfirm={async () => {
          if (payment === undefined) return;
          const route = api.operator.organizations({ organization_id: organization.id });
          await call(route.payments({ payment_id: payment.id }).confirm.post());
          await onChange();
          showToast(
            <>
              <bdi>{organization.name}</bdi> has {amount} more.
            </>,
          );
        }}
      >
        <p>
          The money has arrived:{' '}
          <strong>
            <bdi>{organization.name}</bdi>
          </strong>{' '}
          gets {amount} of credit.
        </p>
      </ConfirmDialog>
    </>
  );
}
