import { useState } from 'preact/hooks';
import { MICROS_PER_DOLLAR } from '../../../contract/money.ts';
import { api, call } from '../client.ts';
import { CopyText } from '../components/copy-button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { Section } from '../components/page-header.tsx';
import { enteredAmount } from '../entered-amount.ts';
import { formatMoney } from '../format.ts';
import { leaveFor } from '../leave.ts';
import type { BillingFacts, Payment } from './facts.ts';

interface TopUpProps {
  readonly organization_id: string;
  readonly terms: BillingFacts['top_up'];
  /** Called when a payment has started. */
  readonly onStarted: () => Promise<void>;
}

/** The form that buys credit: at the provider's checkout, or by a payment that the operator confirms. */
export function TopUp({ organization_id, terms, onStarted }: TopUpProps) {
  const { least_micros, most_micros, is_manual } = terms;
  const [started, setStarted] = useState<Pick<Payment, 'id' | 'amount_micros'>>();
  const [starts, setStarts] = useState(0);
  return (
    <Section
      title="Add credit"
      description={
        is_manual
          ? 'The operator of this service confirms each payment by hand. Your credit comes with the confirmation.'
          : 'You pay at the checkout of the payment provider. Your credit comes as soon as the payment arrives.'
      }
    >
      <div class="panel padded">
        {/* Another key is an empty form. */}
        <Form
          key={starts}
          submit={is_manual ? 'Start payment' : 'Go to checkout'}
          fields={['amount']}
          onSubmit={async (values) => {
            const amount_micros = enteredAmount(values.text('amount'), 'amount') ?? 0;
            const { payment_id, checkout_url } = await call(
              api.organizations({ organization_id })['top-ups'].post({ amount_micros }),
            );
            if (checkout_url !== null) {
              await leaveFor(checkout_url);
              return await onStarted();
            }
            setStarts(starts + 1);
            setStarted({ id: payment_id, amount_micros });
            await onStarted();
          }}
        >
          <TextField
            label="Amount in dollars"
            name="amount"
            prefix="$"
            inputmode="decimal"
            autocomplete="off"
            placeholder={String(most_micros / MICROS_PER_DOLLAR)}
            help={`From ${formatMoney(least_micros)} to ${formatMoney(most_micros)}, to the cent${is_manual ? '' : '; tax is added at the checkout'}.`}
            is_required
          />
        </Form>
      </div>
      <HowToPay payment={started} onClose={() => setStarted(undefined)} />
    </Section>
  );
}

/** The instructions for a payment without a checkout. */
export function HowToPay({
  payment,
  onClose,
}: {
  readonly payment: Pick<Payment, 'id' | 'amount_micros'> | undefined;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title="How to pay" is_open={payment !== undefined} onClose={onClose}>
      {payment !== undefined && (
        <>
          <p>
            Pay <strong class="number">{formatMoney(payment.amount_micros)}</strong> to the operator of this
            service, the way they told you, and give this id as the reference:
          </p>
          <CopyText text={payment.id} label="Copy id" />
          <p>When the money is there, the credit is yours. Until then the payment is listed as waiting.</p>
        </>
      )}
    </Dialog>
  );
}
