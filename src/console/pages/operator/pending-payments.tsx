import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { EmptyState } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast, showToastAbout } from '../components/toast.tsx';
import { formatMoney } from '../format.ts';
import type { OrganizationProps, WholeOrganization } from './whole-organization.ts';

/** The provider whose payments the operator confirms; others confirm their own. */
const MANUAL = 'manual';

type Payment = WholeOrganization['pending'][number];

/** The payments that wait for their confirmation. */
export function PendingPayments({ organization, onChange }: OrganizationProps) {
  const [confirming, setConfirming] = useState<Payment>();
  const [canceling, setCanceling] = useState<Payment>();
  const amount = formatMoney(confirming?.amount_micros ?? 0);
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
            cell: (payment) => (
              <Actions
                payment={payment}
                onConfirm={() => setConfirming(payment)}
                onCancel={() => setCanceling(payment)}
              />
            ),
          },
        ]}
      />
      <ConfirmDialog
        title={`Confirm ${amount}?`}
        action={`Confirm ${amount}`}
        is_dangerous={false}
        is_open={confirming !== undefined}
        onClose={() => setConfirming(undefined)}
        onConfirm={async () => {
          if (confirming === undefined) return;
          const route = api.operator.organizations({ organization_id: organization.id });
          await call(route.payments({ payment_id: confirming.id }).confirm.post());
          await onChange();
          showToastAbout(organization.name, `has ${amount} more.`);
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
      <CancelDialog
        organization={organization}
        payment={canceling}
        onChange={onChange}
        onClose={() => setCanceling(undefined)}
      />
    </>
  );
}

/** The operator's actions on a payment: none on a refund, or on one that is taken back. */
function Actions({
  payment: { kind, is_reversal, provider, amount_micros },
  onConfirm,
  onCancel,
}: {
  readonly payment: Payment;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
}) {
  if (kind !== 'top_up' || is_reversal) return null;
  const amount = formatMoney(amount_micros);
  return (
    <span class="row">
      {provider === MANUAL && (
        <Button size="small" label={`Confirm the payment of ${amount}`} onClick={onConfirm}>
          Confirm…
        </Button>
      )}
      <Button size="small" label={`Cancel the top-up of ${amount}`} onClick={onCancel}>
        Cancel…
      </Button>
    </span>
  );
}

function CancelDialog({
  organization: { id },
  payment,
  onChange,
  onClose,
}: OrganizationProps & { readonly payment: Payment | undefined; readonly onClose: () => void }) {
  return (
    <ConfirmDialog
      title="Cancel this top-up?"
      action="Cancel top-up"
      is_open={payment !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        if (payment === undefined) return;
        const { payments } = api.operator.organizations({ organization_id: id });
        await call(payments({ payment_id: payment.id }).cancel.post());
        await onChange();
        showToast('The top-up is canceled.');
      }}
    >
      <p>
        {payment?.provider === MANUAL
          ? 'It cannot be confirmed afterwards. If another amount has arrived, give that as credit.'
          : 'A checkout that is still open can be paid nevertheless; the credit comes then.'}
      </p>
    </ConfirmDialog>
  );
}
