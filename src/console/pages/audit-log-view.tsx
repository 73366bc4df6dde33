import { AUDIT_LOG_ACTIONS, type AuditLogAction, SERVICE_ACTIONS } from '../../audit-log/actions.ts';
import type { AnswerOf, api } from './client.ts';
import { Badge } from './components/badge.tsx';
import { Select } from './components/field.tsx';
import { EmptyState, ErrorState } from './components/states.tsx';
import { type Column, Table } from './components/table.tsx';
import { Time } from './components/time.tsx';
import { formatExact, formatMoney } from './format.ts';
import { query, setQuery } from './router.ts';
import { chosenZone } from './time-zone.ts';
import { useLoadedPages } from './use-loaded.ts';

type Answer = AnswerOf<typeof api.operator.trail.get>;
type Entry = Answer['items'][number];

/** The position and filter of entries, as the query of the API. */
export interface AuditLogPlace {
  readonly before?: number;
  readonly action?: string;
}

const OBJECTS: Readonly<Record<string, string>> = {
  organization: 'Organization',
  project: 'Project',
  key: 'API key',
  user: 'User',
  invitation: 'Invitation',
  payment: 'Payment',
  payment_event: 'Payment event',
  model: 'Model',
  model_alias: 'Model alias',
};

/** Details without meaning for a reader, or repeated in the object's name. */
const NOT_SHOWN = ['name', 'project_id'];

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'What', is_name: true, cell: ({ sentence }) => <span class="prose-cell">{sentence}</span> },
  { title: 'Who', cell: who },
  { title: 'On', cell: object },
  { title: 'Details', cell: ({ detail }) => <Detail detail={detail} /> },
  { title: 'When', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
];

/** An audit log, newest first, with a filter that is kept in the address. */
export function AuditLogView({
  of,
  inputs,
  load,
}: {
  /** The subject of the audit log; each has actions of its own. */
  readonly of: 'organization' | 'service';
  /** A change of one of these reloads the audit log. */
  readonly inputs: readonly unknown[];
  readonly load: (place: AuditLogPlace) => Promise<Answer>;
}) {
  const action = query.value.get('action') ?? '';
  const pages = useLoadedPages<Entry>(
    async (cursor) => {
      const { items, next } = await load({
        ...(cursor === null ? {} : { before: Number(cursor) }),
        ...(action === '' ? {} : { action }),
      });
      return { items, next: next === null ? null : String(next) };
    },
    [...inputs, action],
  );
  return (
    <div class="stack">
      <div class="audit-log-filter">
        <Select
          label="Action"
          name="action"
          value={action}
          options={[{ value: '', label: 'Everything' }, ...actionsOf(of)]}
          onChange={(chosen) => setQuery({ action: chosen === '' ? null : chosen })}
        />
      </div>
      {pages.error !== undefined && <ErrorState error={pages.error} onRetry={pages.reload} />}
      {(pages.data !== undefined || pages.is_loading) && (
        <Table
          caption="Audit log"
          columns={COLUMNS}
          rows={pages.data}
          keyOf={({ id }) => String(id)}
          is_loading={pages.is_loading}
          loadMore={pages.loadMore}
          empty={
            action === '' ? (
              <EmptyState title="No changes yet">Every change shows up here.</EmptyState>
            ) : (
              <EmptyState title="No changes of this kind">Choose another action.</EmptyState>
            )
          }
        />
      )}
    </div>
  );
}

function actionsOf(of: 'organization' | 'service') {
  return Object.entries(AUDIT_LOG_ACTIONS)
    .filter(([action]) => SERVICE_ACTIONS.some((one) => one === action) === (of === 'service'))
    .map(([action, { sentence }]: [string, (typeof AUDIT_LOG_ACTIONS)[AuditLogAction]]) => ({
      value: action,
      label: sentence.replace(/\.$/, ''),
    }));
}

function who({ by, user_name, user_email }: Entry) {
  const name = user_name === null ? null : <bdi title={user_email ?? undefined}>{user_name}</bdi>;
  if (by === 'user') return name ?? <span class="muted">A former user</span>;
  return (
    <span class="row">
      {name}
      <Badge tone="info">{name === null ? 'The operator' : 'Operator'}</Badge>
    </span>
  );
}

function object({ object_kind, object_id, object_name }: Entry) {
  // All entries are about it.
  if (object_kind === 'organization') return null;
  const kind = OBJECTS[object_kind] ?? object_kind;
  return (
    <span class="prose-cell" title={object_id ?? undefined}>
      <span class="muted">{kind}</span>{' '}
      {object_name === null ? (
        object_id !== null && <code class="wrap">{object_id}</code>
      ) : (
        <bdi>{object_name}</bdi>
      )}
    </span>
  );
}

function Detail({ detail }: { readonly detail: Entry['detail'] }) {
  const fields = Object.entries(detail).filter(([name]) => !NOT_SHOWN.includes(name));
  if (fields.length === 0) return null;
  return (
    <ul class="detail-list">
      {fields.map(([name, value]) => (
        <li key={name}>
          <span class="muted">{wordsOf(name)}</span> {valueText(name, value)}
        </li>
      ))}
    </ul>
  );
}

function wordsOf(name: string): string {
  return name.replace(/_micros(?=_|$)|_at_ms$/, '').replaceAll('_', ' ');
}

function valueText(name: string, value: Entry['detail'][string]): string {
  if (value === null) return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number') return value;
  if (name.endsWith('_at_ms')) return formatExact(value, chosenZone());
  return /_micros(?:_|$)/.test(name) ? formatMoney(value) : String(value);
}
