import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { EmptyState, LoadedView } from '../components/states.tsx';
import { ACTIONS, type Column, Table } from '../components/table.tsx';
import { showToast } from '../components/toast.tsx';
import { formatMoney, formatNumber } from '../format.ts';
import type { PageProps } from '../page.ts';
import { organizationPath } from '../paths.ts';
import { may } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { DriftDialog, DriftSummary } from './drift.tsx';

/** A model of the page: `base_id` is null for one of all organizations. */
type ListedModel = Awaited<ReturnType<typeof loadModels>>[number];

/** The models that the organization may ask, with its own ones. */
export default function Models({ params: { organization_id = '' } }: PageProps) {
  const models = useLoaded(() => loadModels(organization_id), [organization_id]);
  const [removed, setRemoved] = useState<string>();
  const [compared, setCompared] = useState<ListedModel>();
  return (
    <>
      <PageHeader
        title="Models"
        description={
          <>
            What requests can name as their model.
            {may('use_keys') && (
              <>
                {' '}
                Tune one on right answers of your own on the page{' '}
                <a href={organizationPath(organization_id, 'evaluate')}>Evaluate</a>.
              </>
            )}
          </>
        }
      />
      <LoadedView loaded={models}>
        {(listed) => (
          <Table
            caption="Models"
            rows={listed}
            keyOf={({ id }) => id}
            empty={<EmptyState title="No models">The operator of this service opens them.</EmptyState>}
            columns={[
              ...COLUMNS,
              driftColumn(setCompared),
              ...(may('manage_models') ? [removeColumn(setRemoved)] : []),
            ]}
          />
        )}
      </LoadedView>
      <DriftDialog
        id={compared?.id ?? ''}
        drifts={compared?.drifts ?? []}
        is_open={compared !== undefined}
        onClose={() => setCompared(undefined)}
      />
      <ConfirmDialog
        title={`Remove ${removed ?? ''}?`}
        action="Remove model"
        is_open={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        onConfirm={async () => {
          if (removed === undefined) return;
          await call(api.organizations({ organization_id })['own-models'].delete({ id: removed }));
          await models.reload();
          showToast(`${removed} is removed.`);
        }}
      >
        <p>
          The next requests for it get “not found”. Those that have begun are answered. Its usage is kept.
        </p>
      </ConfirmDialog>
    </>
  );
}

const COLUMNS: readonly Column<ListedModel>[] = [
  {
    title: 'Model',
    is_name: true,
    cell: ({ id, is_own }) => (
      <span class="prose-cell">
        {id} {is_own && <Badge>Own</Badge>}
      </span>
    ),
  },
  { title: 'Tuned from', cell: ({ base_id }) => base_id ?? <span class="muted">–</span> },
  {
    title: 'Context (tokens)',
    is_at_end: true,
    cell: ({ context_tokens }) => (context_tokens === null ? '–' : formatNumber(context_tokens)),
  },
  {
    title: 'Price (1M tokens)',
    is_at_end: true,
    cell: ({ input_price_micros_per_million_tokens: price_micros }) =>
      price_micros === null ? '–' : formatMoney(price_micros),
  },
];

function driftColumn(onCompare: (model: ListedModel) => void): Column<ListedModel> {
  return {
    title: 'Answers',
    cell: (model) =>
      model.drifts.length === 0 ? (
        <span class="muted">–</span>
      ) : (
        <span class="prose-cell">
          <DriftSummary drifts={model.drifts} />{' '}
          <Button size="small" label={`Compare the answers of ${model.id}`} onClick={() => onCompare(model)}>
            Compare…
          </Button>
        </span>
      ),
  };
}

function removeColumn(onRemove: (id: string) => void): Column<ListedModel> {
  return {
    ...ACTIONS,
    cell: ({ id, is_own }) =>
      is_own && (
        <Button size="small" label={`Remove ${id}`} onClick={() => onRemove(id)}>
          Remove…
        </Button>
      ),
  };
}

/** Loads the organization's own models, and behind them those of all. Rejects with an `ApiError`. */
async function loadModels(organization_id: string) {
  const within = api.organizations({ organization_id });
  const [own, live] = await Promise.all([call(within['own-models'].get()), call(within.models.get())]);
  const others = live.items.filter(({ id }) => !own.items.some((one) => one.id === id));
  return [
    ...own.items.map((model) => ({ ...model, is_own: true })),
    ...others.map((model) => ({ ...model, base_id: null, is_own: false, drifts: [] })),
  ];
}
