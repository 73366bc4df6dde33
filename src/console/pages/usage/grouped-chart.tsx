import { useMemo } from 'preact/hooks';
import type { Grouping } from '../../../store/groupings.ts';
import { api, call } from '../client.ts';
import { Chart } from '../components/chart.tsx';
import type { ChartColor, ChartSeries } from '../components/chart-series.ts';
import { Select } from '../components/field.tsx';
import { formatCompact, formatMoneyTick } from '../format.ts';
import { useLoaded } from '../use-loaded.ts';
import { GROUPINGS, type UsageSeries } from './series.ts';
import type { Measure, Zoom } from './view.ts';

const SHOWN = [
  { value: 'requests', label: 'Requests', format: formatCompact },
  { value: 'cost_micros', label: 'Cost', format: formatMoneyTick },
  { value: 'input_tokens', label: 'Input tokens', format: formatCompact },
] as const satisfies readonly { readonly value: Measure; readonly label: string; readonly format: unknown }[];

interface GroupedChartProps {
  readonly organization_id: string;
  readonly series: UsageSeries;
  readonly group_by: Grouping;
  readonly measure?: Measure;
  readonly height_px: number;
  readonly onGroup: (group_by: Grouping) => void;
  /** Absent where only requests are shown. */
  readonly onMeasure?: (measure: Measure) => void;
  readonly onZoom: (zoom: Zoom | null) => void;
}

/** The large chart of the usage: requests, cost or tokens over time, stacked by the reader's choice. */
export function GroupedChart({
  organization_id,
  series,
  group_by,
  measure = 'requests',
  height_px,
  onGroup,
  onMeasure,
  onZoom,
}: GroupedChartProps) {
  const is_named = group_by === 'project' || group_by === 'key';
  const named = useLoaded(
    async () => (is_named ? await loadNames(organization_id) : new Map<string, string>()),
    [organization_id, is_named],
  );
  const names = named.data;
  const times_ms = useMemo(() => series.buckets.map(({ start_ms }) => start_ms), [series]);
  const stacked = useMemo(
    () =>
      series.groups.map(
        ({ value, ...sums }, place): ChartSeries => ({
          label: value === null ? 'All others' : labelOf(group_by, value, names),
          values: sums[measure],
          ...colorOf(group_by, value, place),
        }),
      ),
    [series, names, group_by, measure],
  );
  const shown = SHOWN.find(({ value }) => value === measure) ?? SHOWN[0];
  const grouping = GROUPINGS.find(({ value }) => value === group_by) ?? GROUPINGS[0];
  return (
    <Chart
      title={`${shown.label} ${grouping.label.toLowerCase()}`}
      kind="stacked"
      times_ms={times_ms}
      bucket_ms={series.bucket_ms}
      series={stacked}
      format={shown.format}
      height_px={height_px}
      onZoom={onZoom}
      controls={
        <>
          {onMeasure !== undefined && (
            <Select
              label="Shown"
              hides_label
              name="measure"
              options={SHOWN}
              value={measure}
              onChange={(chosen) =>
                onMeasure(SHOWN.find(({ value }) => value === chosen)?.value ?? 'requests')
              }
            />
          )}
          <Select
            label="Group by"
            hides_label
            name="group"
            options={GROUPINGS}
            value={group_by}
            onChange={(chosen) => onGroup(GROUPINGS.find(({ value }) => value === chosen)?.value ?? 'status')}
          />
        </>
      }
    />
  );
}

/** Loads the names of projects and keys by their ids. */
async function loadNames(organization_id: string): Promise<ReadonlyMap<string, string>> {
  const query = { from_ms: 0, to_ms: 1 };
  const { projects, api_keys } = await call(
    api.organizations({ organization_id }).usage.values.get({ query }),
  );
  return new Map([...projects, ...api_keys].map(({ id, name }) => [id, name]));
}

const STATUS_NAMES: Readonly<Record<string, string>> = {
  200: 'Answered',
  400: 'Bad request',
  422: 'Invalid',
  502: 'Model failed',
  503: 'Not ready',
};

function labelOf(group_by: Grouping, value: string, names: ReadonlyMap<string, string> | undefined): string {
  if (group_by === 'status') return `${STATUS_NAMES[value] ?? 'Refused'} (${value})`;
  return names?.get(value) ?? value;
}

/** Answers have one colour, and failures another, whichever of them are shown. */
function colorOf(group_by: Grouping, value: string | null, place: number): { readonly color: ChartColor } {
  if (value === null) return { color: 'muted' };
  if (group_by === 'status') return { color: value === '200' ? 1 : value.startsWith('5') ? 'danger' : 3 };
  return { color: PALETTE[place] ?? 'muted' };
}

const PALETTE = [1, 2, 3, 4, 5] as const;
