import { useEffect, useRef } from 'preact/hooks';
import { type AnswerOf, api, call, type OfOrganization } from '../client.ts';
import { Section } from '../components/page-header.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Table } from '../components/table.tsx';
import { SegmentedControl } from '../components/tabs.tsx';
import { Time } from '../components/time.tsx';
import { formatCount, formatDate, formatExact, formatMoney } from '../format.ts';
import { query, setQuery } from '../router.ts';
import { chosenZone } from '../time-zone.ts';
import { useLoaded, useLoadedPages } from '../use-loaded.ts';

type Movements = AnswerOf<OfOrganization['movements']['get']>;
type Movement = Movements['items'][number];
type Place = NonNullable<Movements['next']>;

/** Every movement of the credit, newest first, with the balance after each. */
export function History({
  organization_id,
  credit_micros,
}: {
  readonly organization_id: string;
  readonly credit_micros: number;
}) {
  const by = query.value.get('by') === 'request' ? 'request' : 'day';
  const of_organization = api.organizations({ organization_id });
  const movements = useLoadedPages<Movement, Place>(
    (before) => call(of_organization.movements.get({ query: { by, ...before } })),
    [organization_id, by],
  );
  const names = useLoaded(() => projectNames(organization_id), [organization_id]);
  const shown_credit = useRef(credit_micros);
  useEffect(() => {
    if (shown_credit.current === credit_micros) return;
    shown_credit.current = credit_micros;
    void movements.reload();
  }, [credit_micros]);
  return (
    <Section
      title="History"
      description="Every payment, refund and charge. Days are UTC."
      actions={
        <SegmentedControl
          label="Charges by"
          options={[
            { value: 'day', label: 'By day' },
            { value: 'request', label: 'By request' },
          ]}
          value={by}
          onChange={(chosen) => setQuery({ by: chosen === 'day' ? null : chosen })}
        />
      }
    >
      {movements.error !== undefined && <ErrorState error={movements.error} onRetry={movements.reload} />}
      {(movements.data !== undefined || movements.is_loading) && (
        <Table
          caption="Movements of credit"
          rows={movements.data}
          keyOf={({ entry_id }) => String(entry_id)}
          is_loading={movements.is_loading}
          loadMore={movements.loadMore}
          empty={<EmptyState title="No transactions yet">Payments and charges show up here.</EmptyState>}
          columns={[
            {
              title: 'What',
              is_name: true,
              cell: (movement) => <What movement={movement} names={names.data} />,
            },
            { title: 'Time', cell: (movement) => <When movement={movement} /> },
            {
              title: 'Amount',
              is_at_end: true,
              cell: ({ amount_micros }) =>
                amount_micros > 0 ? `+${formatMoney(amount_micros)}` : formatMoney(amount_micros),
            },
            {
              title: 'Balance',
              is_at_end: true,
              cell: ({ balance_micros }) => formatMoney(balance_micros),
            },
          ]}
        />
      )}
    </Section>
  );
}

function What({
  movement,
  names,
}: {
  readonly movement: Movement;
  readonly names: ReadonlyMap<string, string> | undefined;
}) {
  const { kind, charges, project_id, request_id, payment_id, refunds_payment_id } = movement;
  if (kind === 'top_up' || kind === 'refund') {
    const added = refunds_payment_id === null ? 'Payment' : 'Refund taken back';
    return (
      <>
        {kind === 'top_up' ? added : 'Refund'} <code class="muted">{payment_id}</code>
      </>
    );
  }
  const project = project_id === null ? undefined : names?.get(project_id);
  return (
    <>
      {request_id === null ? formatCount(charges, 'request') : <code>{request_id}</code>}
      {project !== undefined && <span class="muted"> {project}</span>}
    </>
  );
}

function When({ movement: { kind, at_ms } }: { readonly movement: Movement }) {
  if (kind !== 'charges') return <Time time_ms={at_ms} />;
  return (
    <time dateTime={new Date(at_ms).toISOString()} title={`Last at ${formatExact(at_ms, chosenZone())}`}>
      {formatDate(at_ms, 'UTC')}
    </time>
  );
}

/** Returns the names of all projects, archived ones too, by their ids. */
async function projectNames(organization_id: string): Promise<ReadonlyMap<string, string>> {
  const { projects } = api.organizations({ organization_id });
  const lists = await Promise.all([
    call(projects.get({ query: {} })),
    call(projects.get({ query: { archived: 'true' } })),
  ]);
  return new Map(lists.flatMap(({ items }) => items.map(({ id, name }) => [id, name] as const)));
}
