import { api, call } from '../client.ts';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { Section } from '../components/page-header.tsx';
import { showToast } from '../components/toast.tsx';
import { enteredAmount, enteredText } from '../entered-amount.ts';

interface CreditAlertProps {
  readonly organization_id: string;
  readonly credit_alert_micros: number | null;
  readonly onSaved: () => Promise<void>;
}

/** The credit below which owners, admins and billing members are alerted. */
export function CreditAlert({ organization_id, credit_alert_micros, onSaved }: CreditAlertProps) {
  return (
    <Section
      title="Low credit alert"
      description="Owners, admins and billing members hear of it before requests are refused."
    >
      <div class="panel padded">
        {/* Another key is a form with the new amount. */}
        <Form
          key={credit_alert_micros}
          submit="Save alert"
          fields={['credit_alert']}
          onSubmit={async (values) => {
            const entered = enteredAmount(values.text('credit_alert'), 'credit_alert');
            await call(
              api.organizations({ organization_id })['credit-alert'].patch({ credit_alert_micros: entered }),
            );
            await onSaved();
            showToast('The alert is saved.');
          }}
        >
          <TextField
            label="Alert below"
            name="credit_alert"
            prefix="$"
            inputmode="decimal"
            autocomplete="off"
            value={enteredText(credit_alert_micros)}
            help="Leave it empty for no alert."
          />
        </Form>
      </div>
    </Section>
  );
}
