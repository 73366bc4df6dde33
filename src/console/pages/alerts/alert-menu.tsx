import { useState } from 'preact/hooks';
import { ALERT_PAGES, type AlertFormats, alertSentence, alertTitle } from '../../../alerts/sentences.ts';
import { api, call } from '../client.ts';
import { Icon } from '../components/icon.tsx';
import { Menu } from '../components/menu.tsx';
import { Time } from '../components/time.tsx';
import { formatDate, formatMoney } from '../format.ts';
import { organizationPath } from '../paths.ts';
import { organizations } from '../session.ts';
import { chosenZone } from '../time-zone.ts';
import { usePolled } from '../use-polled.ts';

const POLL_MS = 60_000;

const FORMATS: AlertFormats = {
  money: formatMoney,
  day: (time_ms) => formatDate(time_ms, chosenZone()),
};

const load = () => call(api.alerts.get());
type Received = Awaited<ReturnType<typeof load>>['items'][number];

/** The bell with the number of unread alerts, and the newest ones. Who opens it has read them. */
export function AlertMenu() {
  const { data } = usePolled(load, [], POLL_MS);
  const [is_open, setOpen] = useState(false);
  const [seen_id, setSeen] = useState(0);
  const items = data?.items ?? [];
  const newest_id = items[0]?.id ?? 0;
  const unread = newest_id <= seen_id ? 0 : (data?.unread ?? 0);
  const follow = (opens: boolean) => {
    setOpen(opens);
    if (!opens || unread === 0) return;
    setSeen(newest_id);
    // If it fails, the next visit shows them as unread again.
    call(api.alerts.read.post({ up_to_id: newest_id })).catch(() => undefined);
  };
  return (
    <div class="alert-menu">
      <Menu button={<Bell unread={unread} />} is_at_end onToggle={follow}>
        {is_open && (
          <>
            <p class="menu-title">Alerts</p>
            {items.length === 0 && (
              <p class="menu-title">
                Nothing yet. Low credit, spend limits, payments and keys that expire show up here.
              </p>
            )}
            {items.map((alert) => (
              <ShownAlert key={alert.id} alert={alert} />
            ))}
            <a href="/console/account">Choose whether they are mailed to you</a>
          </>
        )}
      </Menu>
    </div>
  );
}

function Bell({ unread }: { readonly unread: number }) {
  return (
    <>
      <Icon name="bell" />
      <span class="visually-hidden">Alerts</span>
      {unread > 0 && (
        <span class="alert-count">
          {unread}
          <span class="visually-hidden"> unread</span>
        </span>
      )}
    </>
  );
}

function ShownAlert({ alert }: { readonly alert: Received }) {
  const { kind, organization_id, organization_name, subject_name, read_at_ms, created_at_ms } = alert;
  const name = subject_name ?? organization_name;
  return (
    <a
      href={organizationPath(organization_id, ALERT_PAGES[kind])}
      class={read_at_ms === null ? 'alert is-unread' : 'alert'}
    >
      <strong>{alertTitle(alert, FORMATS)}</strong>
      <span>{alertSentence(alert, FORMATS, name)}</span>
      <span class="muted">
        <Time time_ms={created_at_ms} />
        {organizations.value.length > 1 && (
          <>
            {' '}
            · <bdi>{organization_name}</bdi>
          </>
        )}
      </span>
    </a>
  );
}
