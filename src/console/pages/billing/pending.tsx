import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Section } from '../components/page-header.tsx';
import { ACTIONS, type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { formatMoney } from '../format.ts';
import type { BillingFacts, Payment } from './facts.ts';
import { HowToPay } from './top-up.tsx';

interface PendingProps {
  readonly organization_id: string;
  readonly facts: BillingFacts;
  readonly onCanceled: () => Promise<void>;
}

/** Payments and refunds that have begun and are not settled; nothing where there are none. */
export function Pending({ organization_id, facts, onCanceled }: PendingProps) {
  const [told, setTold] = useState<Payment>();
  const [canceling, setCanceling] = useState<Payment>();
  if (facts.pending.length === 0) return null;
  const columns: Column<Payment>[] = [
    { title: 'Payment', is_name: true, cell: ({ id }) => <code>{id}</code> },
    { title: 'What', cell: whatIsPending },
    { title: 'Amount', is_at_end: true, cell: ({ amount_micros }) => formatMoney(amount_micros) },
    { title: 'Started', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
  ];
  if (facts.top_up.is_allowed) {
    columns.push({
      ...ACTIONS,
      cell: (payment) =>
        isTopUp(payment) && (
          <span class="row">
            {payment.provider === 'manual' && (
              <Button size="small" onClick={() => setTold(payment)}>
                How to pay
              </Button>
            )}
            <Button size="small" onClick={() => setCanceling(payment)}>
              Cancel…
            </Button>
          </span>
        ),
    });
  }
  return (
    <Section title="Waiting for payment" description="This list updates by itself.">
      <Table caption="Waiting for payment" rows={facts.pending} keyOf={({ id }) => id} columns={columns} />
      <HowToPay payment={told} onClose={() => setTold(undefined)} />
      <ConfirmDialog
        title="Cancel this top-up?"
        action="Cancel top-up"
        is_open={canceling !== undefined}
        onClose={() => setCanceling(undefined)}
        onConfirm={async () => {
          if (canceling === undefined) return;
          const of_organization = api.organizations({ organization_id });
          await call(of_organization['top-ups']({ payment_id: canceling.id }).cancel.post());
          showToast('The top-up is canceled.');
          await onCanceled();
        }}
      >
        <p>
          {canceling?.provider === 'manual'
            ? `Cancel it only if ${formatMoney(canceling.amount_micros)} was not paid: the operator cannot confirm it afterwards.`
            : 'A checkout that is still open can be paid nevertheless; the credit comes then.'}
        </p>
      </ConfirmDialog>
    </Section>
  );
}

function isTopUp({ kind, is_reversal }: Payment): boolean {
  return kind === 'top_up' && !is_reversal;
}

function whatIsPending({ kind, is_reversal, provider }: Payment): string {
  if (kind === 'refund') return 'Refund';
  if (is_reversal) return 'Refund that is taken back';
  return provider === 'manual' ? 'Top-up, confirmed by hand' : 'Top-up at the checkout';
}
