import { EXPORT_ROWS_MAX } from '../../../usage/export-rows-max.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { zoneOf } from '../components/chart-time.ts';
import { DateRangePicker } from '../components/date-range.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page-header.tsx';
import { Skeleton } from '../components/skeleton.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { formatCount, formatExact, formatMoment, formatNumber } from '../format.ts';
import { organizationPath } from '../paths.ts';
import { chosenZone } from '../time-zone.ts';
import { useLoaded, useLoadedPages } from '../use-loaded.ts';
import { FilterBar } from './filter-bar.tsx';
import { RefusedRequests } from './refused-requests.tsx';
import { loadRequests, requestColumns } from './requests.tsx';
import { loadSeries, type UsageSums } from './series.ts';
import { Totals } from './totals.tsx';
import { UsageCharts } from './usage-charts.tsx';
import {
  isFiltered,
  isPartOf,
  rangeOf,
  spanName,
  spanOf,
  type UsageQuery,
  type UsageView,
  zoomTo,
} from './view.ts';

interface OverviewProps {
  readonly organization_id: string;
  readonly view: UsageView;
  readonly shown_at_ms: number;
  /** Counts up when everything is to be asked again. */
  readonly refreshes: number;
  readonly asked: UsageQuery;
  readonly show: (changes: Partial<UsageView>, options?: { readonly replace: boolean }) => void;
}

/** All requests of a time and the filters: totals, charts and a table. */
export function UsageOverview({ organization_id, view, shown_at_ms, refreshes, asked, show }: OverviewProps) {
  const { group_by, measure } = view;
  const fits_data = view.zoom === null && !view.is_whole;
  const series = useLoaded(
    () => loadSeries(organization_id, asked, { group_by, fits_data }),
    [organization_id, asked, chosenZone()],
    { keep_stale: true },
  );
  const requests = useLoadedPages(
    (after) => loadRequests(organization_id, asked, after),
    [organization_id, asked],
    {
      keep_stale: true,
    },
  );
  const { data } = series;
  const range = rangeOf(view, shown_at_ms, data);
  // The zone of stale charts may differ from that of the ones being loaded.
  const time_zone = zoneOf(series.is_loading ? undefined : data?.bucket_ms);
  const is_answered = data !== undefined || series.error !== undefined;
  return (
    <>
      <div class="row">
        <DateRangePicker
          has_all
          value={range}
          onChange={(chosen) => show({ span: spanOf(chosen), zoom: null })}
        />
        <div class="row" role="status">
          {view.zoom !== null && (
            <>
              <span>
                {formatMoment(view.zoom.from_ms, time_zone)} to {formatExact(view.zoom.to_ms, time_zone)}
              </span>
              <Button onClick={() => show({ zoom: null })}>Back to {spanName(view)}</Button>
            </>
          )}
          {fits_data && data !== undefined && !series.is_loading && isPartOf(data, range) && (
            <>
              <span>
                All requests came from {formatMoment(data.from_ms, time_zone)} to{' '}
                {formatExact(data.to_ms, time_zone)}
              </span>
              <Button onClick={() => show({ is_whole: true })}>Show {spanName(view)} whole</Button>
            </>
          )}
          {view.is_whole && view.zoom === null && (
            <Button onClick={() => show({ is_whole: false })}>Show only the time with requests</Button>
          )}
        </div>
      </div>
      {is_answered && (
        // After the charts, because the service runs one read after the other.
        <FilterBar
          organization_id={organization_id}
          view={view}
          shown_at_ms={shown_at_ms}
          refreshes={refreshes}
          show={show}
        />
      )}
      {series.error !== undefined && <ErrorState error={series.error} onRetry={series.reload} />}
      {!is_answered && <Skeleton lines={6} label="Loading usage" />}
      {data !== undefined && data.totals.requests === 0 && (
        <>
          <div class="panel">
            <NoRequests organization_id={organization_id} view={view} show={show} />
          </div>
          <RefusedRequests organization_id={organization_id} refreshes={refreshes} />
        </>
      )}
      {data !== undefined && data.totals.requests > 0 && (
        <div class="stack" aria-busy={series.is_loading}>
          <Totals totals={data.totals} />
          <RolledUpNotice totals={data.totals} />
          <UsageCharts
            organization_id={organization_id}
            series={data}
            group_by={group_by}
            measure={measure}
            onGroup={(chosen) => show({ group_by: chosen })}
            onMeasure={(chosen) => show({ measure: chosen })}
            onZoom={(zoom) => {
              if (zoom !== null) show({ zoom: zoomTo(zoom) }, { replace: false });
              else if (view.zoom !== null) show({ zoom: null });
            }}
          />
          <RefusedRequests organization_id={organization_id} refreshes={refreshes} />
          <Section title="Requests" description={shownRows(data.totals)}>
            {requests.error !== undefined && <ErrorState error={requests.error} onRetry={requests.reload} />}
            {(requests.data !== undefined || requests.is_loading) && (
              <Table
                caption="Requests"
                columns={requestColumns(organization_id)}
                rows={requests.data}
                keyOf={({ request_id }) => request_id}
                is_loading={requests.is_loading}
                is_wide
                loadMore={requests.loadMore}
                empty={
                  <EmptyState title="Only daily totals are left of this time">
                    The charts show them. Single requests are no longer kept.
                  </EmptyState>
                }
              />
            )}
          </Section>
        </div>
      )}
    </>
  );
}

function NoRequests({
  organization_id,
  view,
  show,
}: Pick<OverviewProps, 'organization_id' | 'view' | 'show'>) {
  if (isFiltered(view)) {
    return (
      <EmptyState title="No request matches these filters">
        Change the filters, or choose a longer time.
      </EmptyState>
    );
  }
  if (view.span !== 'all' || view.zoom !== null) {
    return (
      <EmptyState
        title="No requests in this time"
        actions={<Button onClick={() => show({ span: 'all', zoom: null })}>Show all time</Button>}
      />
    );
  }
  return (
    <EmptyState
      title="No requests yet"
      actions={<ButtonLink href={organizationPath(organization_id, 'keys')}>API keys</ButtonLink>}
    >
      Create an API key and send a request. It shows up here at once.
    </EmptyState>
  );
}

function RolledUpNotice({ totals: { requests, rolled_up_requests } }: { readonly totals: UsageSums }) {
  if (rolled_up_requests === 0) return null;
  const which =
    rolled_up_requests === requests ? 'All of these' : `${formatNumber(rolled_up_requests)} of these`;
  return (
    <Notice title={`${which} requests are kept as daily totals`}>
      They count in the totals and charts, without latency, and are not listed below or exported.
    </Notice>
  );
}

function shownRows({ requests, rolled_up_requests }: UsageSums): string {
  const rows = requests - rolled_up_requests;
  const all = `${formatCount(rows, 'request')}, newest first.`;
  return rows > EXPORT_ROWS_MAX ? `${all} The export has the newest ${formatNumber(EXPORT_ROWS_MAX)}.` : all;
}
