import { useEffect, useRef } from 'preact/hooks';
import { DAY_MS } from '../../../time/clock.ts';
import { api, call } from '../client.ts';
import { ButtonLink } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader, Section } from '../components/page-header.tsx';
import { ErrorState, LoadedView } from '../components/states.tsx';
import { MoneyTile, Tile } from '../components/tile.tsx';
import { formatNumber } from '../format.ts';
import type { PageProps } from '../page.ts';
import { organizationPath } from '../paths.ts';
import { may } from '../session.ts';
import { RefusedRequests } from '../usage/refused-requests.tsx';
import { useLoaded } from '../use-loaded.ts';
import { useRefresh } from '../use-refresh.ts';
import { daysLeft, daysLeftText, spentOf } from './days-left.ts';
import { areDone, CommandAgain, FirstSteps } from './first-steps.tsx';
import { LiveLimits } from './live-limits.tsx';
import { ProjectsNearLimit } from './projects-near-limit.tsx';
import { RecentChanges } from './recent-changes.tsx';
import { RequestChart } from './request-chart.tsx';

/** The first page of an organization: its first steps, then its usage and credit. */
export default function Overview({ params: { organization_id = '' } }: PageProps) {
  const steps = useLoaded(
    () => call(api.organizations({ organization_id })['first-steps'].get()),
    [organization_id],
  );
  const summary = useLoaded(() => loadSummary(organization_id), [organization_id]);
  const are_done = steps.data !== undefined && areDone(steps.data);
  useRefresh(steps.reload, steps.data !== undefined && !are_done);
  const done = JSON.stringify(steps.data);
  const shown_done = useRef(done);
  useEffect(() => {
    // A step that was done elsewhere changes the summary.
    if (shown_done.current !== undefined && shown_done.current !== done) void summary.reload();
    shown_done.current = done;
  }, [done]);
  return (
    <>
      <PageHeader
        title="Overview"
        actions={
          are_done &&
          may('use_keys') && (
            <ButtonLink href={organizationPath(organization_id, 'playground')}>
              Open the playground
            </ButtonLink>
          )
        }
      />
      {steps.error !== undefined && <ErrorState error={steps.error} onRetry={steps.reload} />}
      {steps.data !== undefined && !are_done && (
        <FirstSteps organization_id={organization_id} steps={steps.data} />
      )}
      <Section
        title="Usage"
        description="Days and months are UTC."
        actions={<a href={organizationPath(organization_id, 'usage')}>All usage</a>}
      >
        <LoadedView loaded={summary} lines={3}>
          {(data) => <Summary organization_id={organization_id} summary={data} />}
        </LoadedView>
      </Section>
      <div class="chart-board">
        <RequestChart organization_id={organization_id} />
        <LiveLimits organization_id={organization_id} />
      </div>
      <RefusedRequests organization_id={organization_id} hides_none />
      {may('see_audit_log') && <RecentChanges organization_id={organization_id} />}
      <ProjectsNearLimit organization_id={organization_id} />
      {steps.data !== undefined && are_done && <CommandAgain {...steps.data} />}
    </>
  );
}

const WEEK_MS = 7 * DAY_MS;

/** Loads the usage of the last 7 days, of today and of this month, and the credit. */
async function loadSummary(organization_id: string) {
  const { usage, billing } = api.organizations({ organization_id });
  const now = new Date();
  const today_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const month_ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  const totals = { without_buckets: 'true' } as const;
  const [week, today, month, credit] = await Promise.all([
    call(usage.series.get({ query: { from_ms: now.getTime() - WEEK_MS } })),
    call(usage.series.get({ query: { ...totals, from_ms: today_ms } })),
    call(usage.series.get({ query: { ...totals, from_ms: month_ms } })),
    call(billing.get()),
  ]);
  return { spent: spentOf(week, now.getTime()), today: today.totals, month: month.totals, credit };
}

function Summary({
  organization_id,
  summary: { spent, today, month, credit },
}: {
  readonly organization_id: string;
  readonly summary: Awaited<ReturnType<typeof loadSummary>>;
}) {
  const billing = organizationPath(organization_id, 'billing');
  return (
    <div class="stack">
      {(credit.available_micros < 0 || (credit.available_micros === 0 && credit.tier > 0)) && (
        <Notice
          tone="warning"
          title="You are out of credit"
          actions={may('top_up') ? <ButtonLink href={billing}>Add credit</ButtonLink> : undefined}
        >
          Requests are refused until somebody adds credit.
        </Notice>
      )}
      <dl class="tiles">
        <Tile title="Requests today" value={formatNumber(today.requests)} />
        <MoneyTile title="Cost today" micros={today.cost_micros} />
        <Tile title="Requests this month" value={formatNumber(month.requests)} />
        <MoneyTile title="Cost this month" micros={month.cost_micros} />
        <MoneyTile
          title={<a href={billing}>Available credit</a>}
          micros={credit.available_micros}
          note={
            credit.available_micros > 0 ? daysLeftText(daysLeft(credit.available_micros, spent)) : undefined
          }
        />
      </dl>
    </div>
  );
}
