import { render } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError } from '../../../src/console/pages/client.ts';
import { Badge } from '../../../src/console/pages/components/badge.tsx';
import { Button, ButtonLink } from '../../../src/console/pages/components/button.tsx';
import { Chart } from '../../../src/console/pages/components/chart.tsx';
import { CopyText } from '../../../src/console/pages/components/copy-button.tsx';
import { DateRangePicker } from '../../../src/console/pages/components/date-range.tsx';
import { ConfirmDialog } from '../../../src/console/pages/components/dialog.tsx';
import { Checkbox, Select, TextArea, TextField } from '../../../src/console/pages/components/field.tsx';
import { Form } from '../../../src/console/pages/components/form.tsx';
import { Meter, ProbabilityBar } from '../../../src/console/pages/components/meter.tsx';
import { Notice } from '../../../src/console/pages/components/notice.tsx';
import { PageHeader, Section } from '../../../src/console/pages/components/page-header.tsx';
import { Skeleton } from '../../../src/console/pages/components/skeleton.tsx';
import { EmptyState, ErrorState } from '../../../src/console/pages/components/states.tsx';
import { type Column, Table } from '../../../src/console/pages/components/table.tsx';
import { Tabs } from '../../../src/console/pages/components/tabs.tsx';
import { Time } from '../../../src/console/pages/components/time.tsx';
import { showToast } from '../../../src/console/pages/components/toast.tsx';
import {
  formatDuration,
  formatMoney,
  formatMoneyShort,
  formatNumber,
} from '../../../src/console/pages/format.ts';
import { Frame } from '../../../src/console/pages/frame.tsx';
import { rangeOfPreset } from '../../../src/console/pages/ranges.ts';
import { startRouter } from '../../../src/console/pages/router.ts';
import { loadSession, session } from '../../../src/console/pages/session.ts';
import { startTheme } from '../../../src/console/pages/theme.ts';

const NOW_MS = Date.UTC(2026, 2, 5, 12);
const HOURS = Array.from({ length: 48 }, (_, hour) => NOW_MS - (48 - hour) * 3_600_000);
const REQUESTS = HOURS.map((_, hour) => Math.round(400 + 300 * Math.sin(hour / 4) + 5 * hour));
const LATENCY_50 = HOURS.map((_, hour) => 80 + 20 * Math.sin(hour / 3));
const LATENCY_95 = HOURS.map((_, hour) => (hour === 20 ? null : 190 + 60 * Math.sin(hour / 5)));
const REQUEST_SERIES = [{ label: 'Requests', values: REQUESTS }];
const LATENCY_SERIES = [
  { label: 'Median', values: LATENCY_50 },
  { label: '95th percentile', values: LATENCY_95 },
];

interface Key {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly spent_micros: number;
  readonly used_at_ms: number | null;
}

const KEYS: readonly Key[] = [
  {
    id: '1',
    name: 'Production',
    prefix: 'sk_svc_4fQ2x',
    spent_micros: 12_345_678,
    used_at_ms: Date.now() - 90_000,
  },
  {
    id: '2',
    name: 'A key with quite a long name for its table',
    prefix: 'sk_svc_9zB1m',
    spent_micros: 150,
    used_at_ms: null,
  },
];

const COLUMNS: readonly Column<Key>[] = [
  { title: 'Name', is_name: true, cell: ({ name }) => name },
  { title: 'Key', cell: ({ prefix }) => <code>{prefix}…</code> },
  { title: 'Spent', is_at_end: true, cell: ({ spent_micros }) => formatMoney(spent_micros) },
  { title: 'Last used', cell: ({ used_at_ms }) => <Time time_ms={used_at_ms} /> },
  {
    title: 'State',
    cell: ({ used_at_ms }) =>
      used_at_ms === null ? <Badge>Unused</Badge> : <Badge tone="success">Active</Badge>,
  },
  {
    title: 'Actions',
    hides_title: true,
    is_at_end: true,
    cell: ({ name }) => (
      <Button size="small" label={`Revoke ${name}`}>
        Revoke
      </Button>
    ),
  },
];

const TABS = [
  { value: 'fast', label: 'Fast' },
  { value: 'consistent', label: 'Consistent' },
  { value: 'both', label: 'Both' },
] as const;

/** Every component of the console in its states. */
function Gallery() {
  const [is_asking, setAsking] = useState(false);
  const [range, setRange] = useState(() => ({ ...rangeOfPreset('week', NOW_MS), preset: 'days' as const }));
  const [tab, setTab] = useState<(typeof TABS)[number]['value']>('fast');
  if (session.value.state !== 'signed_in') return <Skeleton />;
  return (
    <Frame>
      <PageHeader
        title="Gallery"
        description="Every component in its states."
        actions={
          <>
            <Button onClick={() => showToast('It is done.')}>Show a toast</Button>
            <Button kind="primary">Create key</Button>
          </>
        }
      />
      <div class="stack">
        <dl class="tiles">
          {[
            ['Requests', formatNumber(1_234_567)],
            ['Cost', formatMoneyShort(87_654_321)],
            ['Median latency', formatDuration(85)],
            ['Errors', '0.12%'],
          ].map(([title, value]) => (
            <div key={title} class="panel tile">
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <DateRangePicker value={range} onChange={(chosen) => setRange({ ...chosen, preset: 'days' })} />
        <div class="grid">
          <Chart
            title="Requests by hour"
            kind="bars"
            times_ms={HOURS}
            series={REQUEST_SERIES}
            format={(value) => formatNumber(value)}
          />
          <Chart title="Latency" times_ms={HOURS} series={LATENCY_SERIES} format={formatDuration} />
        </div>
        <Table
          caption="API keys"
          columns={COLUMNS}
          rows={KEYS}
          keyOf={({ id }) => id}
          empty={null}
          loadMore={() => Promise.resolve()}
        />
        <Table
          caption="Members"
          columns={COLUMNS}
          rows={[]}
          keyOf={({ id }) => id}
          empty={
            <EmptyState title="No keys yet" actions={<Button kind="primary">Create the first</Button>}>
              A key lets your program ask. It is shown once.
            </EmptyState>
          }
        />
        <Notice title="Your tier is now 2">You may ask 1,000 times a minute.</Notice>
        <Notice tone="success" title="The payment has arrived" />
        <Notice tone="warning" title="80 % of the limit is spent" actions={<Button>Change limit</Button>} />
        <ErrorState
          error={
            new ApiError(
              'billing_unavailable',
              'The billing service is briefly unavailable.',
              null,
              'req_x1',
              503,
            )
          }
          onRetry={() => showToast('Tried again.')}
        />
        <div class="row">
          <Button>Secondary</Button>
          <Button kind="primary" is_busy>
            Busy
          </Button>
          <Button kind="danger" onClick={() => setAsking(true)}>
            Revoke key…
          </Button>
          <Button kind="quiet">Quiet</Button>
          <Button is_disabled>Disabled</Button>
          <ButtonLink href="/console">A link</ButtonLink>
          <Badge tone="info">Info</Badge>
          <Badge tone="warning">Warning</Badge>
          <Badge tone="danger">Danger</Badge>
        </div>
        <CopyText text="sk_svc_4fQ2xGq0w9Zr8Tn5Vb3Kd7Lp1Hs6Jy2" />
        <CopyText
          is_block
          text={'curl https://tds.example.com/v1/decisions \\\n  -H "Authorization: Bearer $KEY"'}
        />
        <div class="grid">
          <div class="panel padded stack">
            <Meter label="Default" value={3_200_000} limit={10_000_000} format={formatMoneyShort} />
            <Meter label="Production" value={8_500_000} limit={10_000_000} format={formatMoneyShort} />
            <Meter label="Test" value={10_000_000} limit={10_000_000} format={formatMoneyShort} />
            <Meter label="Free" value={10_000_000} limit={null} format={formatMoneyShort} />
          </div>
          <div class="panel padded">
            <ProbabilityBar label="refund" probability={0.82} threshold={0.5} is_answer />
            <ProbabilityBar label="question about an invoice" probability={0.15} />
            <ProbabilityBar label="other" probability={0.03} />
          </div>
        </div>
        <Tabs label="Mode" options={TABS} value={tab} onChange={setTab}>
          <p>Shown: {tab}</p>
        </Tabs>
        <Skeleton lines={3} />
        <Section title="A form" description="Its second field is refused by the server.">
          <div class="panel padded">
            <Form
              submit="Save"
              fields={['name', 'limit']}
              onCancel={() => undefined}
              onSubmit={() =>
                Promise.reject(
                  new ApiError(
                    'invalid_request',
                    'The limit is below what is spent.',
                    'limit',
                    'req_x2',
                    422,
                  ),
                )
              }
            >
              <TextField label="Name" name="name" help="Members see it." is_required value="Default" />
              <TextField label="Monthly limit" name="limit" prefix="$" inputmode="decimal" value="5" />
              <Select
                label="Role"
                name="role"
                options={[
                  { value: 'reader', label: 'Reader' },
                  { value: 'developer', label: 'Developer' },
                ]}
              />
              <TextArea label="Record" name="record" is_code placeholder="Paste a record" />
              <Checkbox label="Send me a mail" name="mail" />
            </Form>
          </div>
        </Section>
      </div>
      <ConfirmDialog
        title="Revoke this key?"
        action="Revoke key"
        is_open={is_asking}
        onClose={() => setAsking(false)}
        onConfirm={() => Promise.resolve(showToast('The key is revoked.'))}
      >
        <p>Programs that use it are refused from now on. This cannot be undone.</p>
      </ConfirmDialog>
    </Frame>
  );
}

startTheme();
startRouter();
void loadSession();
const place = document.getElementById('page');
if (place !== null) render(<Gallery />, place);
