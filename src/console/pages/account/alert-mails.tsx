import { api, call } from '../client.ts';
import { Checkbox } from '../components/field.tsx';
import { Section } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { attempt, showToast } from '../components/toast.tsx';
import { useLoaded } from '../use-loaded.ts';

/** The switch of the reader's alert mails. */
export function AlertMails() {
  const alerts = useLoaded(() => call(api.alerts.get()), []);
  const choose = async (gets_mails: boolean) => {
    await attempt(async () => {
      await call(api.alerts.patch({ gets_mails }));
      showToast(gets_mails ? 'Alerts are mailed to you.' : 'Alerts are no longer mailed to you.');
    });
    await alerts.reload();
  };
  return (
    <Section
      title="Alerts"
      description="Low credit, spend limits, tier changes, payments and keys that expire. The bell shows them in any case."
    >
      <LoadedView loaded={alerts} lines={1}>
        {({ gets_mails }) => (
          <Checkbox
            name="gets_mails"
            label="Mail me alerts"
            is_checked={gets_mails}
            onChange={(is_on) => void choose(is_on)}
          />
        )}
      </LoadedView>
    </Section>
  );
}
