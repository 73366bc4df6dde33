import type { ComponentChildren } from 'preact';
import { api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import type { Column } from '../components/table.tsx';
import { TimeText } from '../components/time.tsx';
import { formatCost, formatDuration, formatMoment, formatNumber } from '../format.ts';
import { requestPath } from '../paths.ts';
import { chosenZone } from '../time-zone.ts';
import type { UsageQuery } from './view.ts';

/** Loads a page of the requests, newest first. */
export async function loadRequests(organization_id: string, asked: UsageQuery, after: string | null) {
  const query = { ...asked, ...(after === null ? {} : { after }) };
  return await call(api.organizations({ organization_id }).usage.rows.get({ query }));
}

export type UsedRequest = Awaited<ReturnType<typeof loadRequests>>['items'][number];

function StatusBadge({ status }: { readonly status: number }) {
  const tone = status === 200 ? 'success' : status >= 500 ? 'danger' : 'warning';
  return <Badge tone={tone}>{status}</Badge>;
}

/** A name that gives way to numbers; its title has all of it. */
function Clipped({ text }: { readonly text: string }) {
  return (
    <span class="clipped" title={text}>
      {text}
    </span>
  );
}

interface RequestField {
  readonly title: string;
  readonly value: (request: UsedRequest) => ComponentChildren;
  readonly is_at_end?: boolean;
  /**
   * The presence of the field in the table; `everywhere` includes a phone's. The request's own view and the
   * export have all fields.
   */
  readonly in_table?: 'never' | 'everywhere';
}

/** The fields of a request besides its time and id. */
export const REQUEST_FIELDS: readonly RequestField[] = [
  { title: 'Model', value: ({ model }) => model },
  { title: 'Mode', value: ({ mode }) => mode },
  { title: 'Endpoint', value: ({ endpoint }) => <code>{endpoint}</code>, in_table: 'never' },
  { title: 'Project', value: ({ project }) => <Clipped text={project} /> },
  { title: 'API key', value: ({ api_key }) => <Clipped text={api_key} /> },
  { title: 'Status', value: ({ status }) => <StatusBadge status={status} />, in_table: 'everywhere' },
  { title: 'Questions', value: ({ questions }) => formatNumber(questions), is_at_end: true },
  { title: 'Input tokens', value: ({ input_tokens }) => formatNumber(input_tokens), is_at_end: true },
  {
    title: 'Cost',
    value: ({ cost_micros }) => formatCost(cost_micros),
    is_at_end: true,
    in_table: 'everywhere',
  },
  {
    title: 'Latency',
    value: ({ latency_ms }) => formatDuration(latency_ms),
    is_at_end: true,
    in_table: 'everywhere',
  },
];

/** The characters of an id that distinguish requests; its link and title have all of it. */
const SHORT_ID_LENGTH = 12;

/**
 * Returns the columns of the table that fit its screen. The id is first and links to the request's own view.
 */
export function requestColumns(organization_id: string): readonly Column<UsedRequest>[] {
  return [
    {
      title: 'Time',
      cell: ({ time_ms }) => <TimeText time_ms={time_ms}>{formatMoment(time_ms, chosenZone())}</TimeText>,
      is_name: true,
    },
    {
      title: 'Request id',
      cell: ({ request_id }) => (
        <a href={requestPath(organization_id, request_id)} title={request_id}>
          <code>{request_id.slice(0, SHORT_ID_LENGTH)}…</code>
        </a>
      ),
    },
    ...REQUEST_FIELDS.filter(({ in_table }) => in_table !== 'never').map(
      ({ title, value, is_at_end = false, in_table }) => ({
        title,
        cell: value,
        is_at_end,
        is_secondary: in_table !== 'everywhere',
      }),
    ),
  ];
}
