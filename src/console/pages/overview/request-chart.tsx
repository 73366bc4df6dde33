import { useMemo, useState } from 'preact/hooks';
import type { Grouping } from '../../../store/groupings.ts';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { organizationPath } from '../paths.ts';
import { navigate } from '../router.ts';
import { chosenZone } from '../time-zone.ts';
import { GroupedChart } from '../usage/grouped-chart.tsx';
import { loadSeries } from '../usage/series.ts';
import { addressOf, queryOf, viewOf, zoomTo } from '../usage/view.ts';
import { useLoaded } from '../use-loaded.ts';

const HEIGHT_PX = 260;

/** The requests of the last 7 days, grouped by the reader's choice; dragging opens that time on the usage page. */
export function RequestChart({ organization_id }: { readonly organization_id: string }) {
  const [group_by, setGroup] = useState<Grouping>('status');
  const week = useMemo(() => viewOf(new URLSearchParams()), []);
  const series = useLoaded(
    () => loadSeries(organization_id, queryOf(week, Date.now()), { group_by, fits_data: true }),
    [organization_id, group_by, chosenZone()],
    { keep_stale: true },
  );
  return (
    <LoadedView loaded={series} lines={6}>
      {(data) =>
        data.totals.requests === 0 ? (
          <div class="panel">
            <EmptyState title="No requests in the last 7 days">New requests show up here.</EmptyState>
          </div>
        ) : (
          <GroupedChart
            organization_id={organization_id}
            series={data}
            group_by={group_by}
            height_px={HEIGHT_PX}
            onGroup={setGroup}
            onZoom={(zoom) => {
              if (zoom === null) return;
              const shown = addressOf({ ...week, group_by, zoom: zoomTo(zoom) });
              const fields = Object.entries(shown).filter(([, value]) => value !== null);
              const query = new URLSearchParams(fields.map(([name, value]) => [name, value ?? '']));
              navigate(`${organizationPath(organization_id, 'usage')}?${query}`);
            }}
          />
        )
      }
    </LoadedView>
  );
}
