import { nanoid } from 'nanoid';
import { useState } from 'preact/hooks';
import { parseDollars } from '../../../contract/money.ts';
import { ApiError, api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Checkbox, TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { showToastAbout } from '../components/toast.tsx';
import { formatMoney } from '../format.ts';
import type { OrganizationProps } from './whole-organization.ts';

type What = 'credit' | 'refund';

interface Entered {
  readonly amount_micros: number;
  readonly is_forced: boolean;
}

const WORDS = {
  credit: { title: 'Give credit', button: 'Give credit…' },
  refund: { title: 'Take credit back', button: 'Take back…' },
} as const;

/** Credit that is given and taken by hand: an amount, and then its confirmation. */
export function CreditActions({ organization, onChange }: OrganizationProps) {
  const [what, setWhat] = useState<What>();
  const close = () => {
    setWhat(undefined);
    // An entry without an answer may be in the books, so the page loads it before the next one.
    void onChange();
  };
  return (
    <>
      <Button onClick={() => setWhat('refund')}>{WORDS.refund.button}</Button>
      <Button kind="primary" onClick={() => setWhat('credit')}>
        {WORDS.credit.button}
      </Button>
      <Dialog
        title={what === undefined ? '' : WORDS[what].title}
        is_open={what !== undefined}
        onClose={close}
      >
        {what !== undefined && (
          <Steps
            what={what}
            organization={organization}
            onChange={onChange}
            onDone={() => setWhat(undefined)}
            onCancel={close}
          />
        )}
      </Dialog>
    </>
  );
}

/**
 * The steps from opening the dialog to closing it make one entry. Its id therefore stays over every failure,
 * after which it is unknown if the entry was made.
 */
function Steps({
  what,
  organization,
  onChange,
  onDone,
  onCancel,
}: OrganizationProps & {
  readonly what: What;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}) {
  const [entry_id] = useState(() => `entry_${nanoid()}`);
  const [entered, setEntered] = useState<Entered>();
  const [is_sent, setSent] = useState(false);
  const { id, name, credit_micros, top_up } = organization;
  if (entered === undefined) {
    return (
      <Form
        key="amount"
        submit="Continue…"
        fields={['amount']}
        onCancel={onCancel}
        onSubmit={(values) => {
          const amount_micros = parseDollars(values.text('amount'));
          if (amount_micros === null || amount_micros === 0) {
            const text = 'Write dollars above zero, such as 25 or 12.50.';
            return Promise.reject(new ApiError('invalid_amount', text, 'amount', null, 422));
          }
          setEntered({ amount_micros, is_forced: values.isChecked('is_forced') });
          return Promise.resolve();
        }}
      >
        <p>
          {what === 'credit'
            ? 'Enter a payment that you have received. It counts as paid, and can lift the tier.'
            : 'Enter money that you have returned. Only payments that were entered by hand are refunded here.'}
        </p>
        <TextField
          label="Amount"
          name="amount"
          prefix="$"
          inputmode="decimal"
          placeholder="25.00"
          help={
            what === 'credit'
              ? `One top-up of this organization is ${formatMoney(top_up.least_micros)} to ${formatMoney(top_up.most_micros)}.`
              : 'The credit may fall below zero.'
          }
          is_required
        />
        {what === 'credit' && <Checkbox label="Also outside of that range" name="is_forced" />}
      </Form>
    );
  }
  const { amount_micros, is_forced } = entered;
  const amount = formatMoney(amount_micros);
  const after_micros = credit_micros + (what === 'credit' ? amount_micros : -amount_micros);
  const route = api.operator.organizations({ organization_id: id });
  return (
    <Form
      key="confirmation"
      submit={what === 'credit' ? `Give ${amount}` : `Take back ${amount}`}
      kind={what === 'credit' ? 'primary' : 'danger'}
      onCancel={() => setEntered(undefined)}
      onSubmit={async () => {
        try {
          if (what === 'credit') await call(route.credit.post({ entry_id, amount_micros, is_forced }));
          else await call(route.refund.post({ entry_id, amount_micros }));
        } catch (failure) {
          setSent(true);
          // The form shows the failure of the entry, even if the figures cannot be read.
          await onChange().catch(() => undefined);
          throw failure;
        }
        // The dialog would tell the new figures as what the entry begins with.
        void onChange().catch(() => undefined);
        showToastAbout(name, `has ${amount} ${what === 'credit' ? 'more' : 'less'}.`);
      }}
      onDone={onDone}
    >
      <p>
        {what === 'credit' ? 'Give' : 'Take'} <strong>{amount}</strong> {what === 'credit' ? 'to' : 'from'}{' '}
        <strong>
          <bdi>{name}</bdi>
        </strong>
        ?
      </p>
      <p class="muted">
        {is_sent
          ? `Its credit is ${formatMoney(credit_micros)} now. However often this is sent, it is entered once.`
          : `Its credit goes from ${formatMoney(credit_micros)} to ${formatMoney(after_micros)}, less what is charged meanwhile.`}
      </p>
    </Form>
  );
}
