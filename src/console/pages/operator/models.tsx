import { useState } from 'preact/hooks';
import { parseDollars } from '../../../contract/money.ts';
import { STABILITY_INDEX_MAX } from '../../../tuning/stability-index.ts';
import { type AnswerOf, ApiError, api, call } from '../client.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import type { Tone } from '../components/notice.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchedTable } from '../components/searched-table.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { ACTIONS } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { formatCount, formatMoney, formatNumber } from '../format.ts';
import { usePolled } from '../use-polled.ts';

const POLL_MS = 2_000;

type Model = AnswerOf<typeof api.operator.models.get>['items'][number];

/** An action on a model that waits for its confirmation. */
type Asked = { readonly what: 'price' | 'open' | 'close' | 'reload'; readonly model: Model };

const STATES = {
  cold: { tone: 'neutral', text: 'Not loaded' },
  loading: { tone: 'info', text: 'Loading' },
  fast_ready: { tone: 'info', text: 'Ready for fast' },
  ready: { tone: 'success', text: 'Ready' },
} as const satisfies Record<string, { readonly tone: Tone; readonly text: string }>;

/** The models: their state, price and openness. */
export default function Models() {
  const models = usePolled(() => call(api.operator.models.get()), [], POLL_MS);
  const [asked, setAsked] = useState<Asked>();
  return (
    <>
      <PageHeader
        title="Models"
        description={
          <>
            Models are added on the server, with <code>tds model add</code>. State, load and reloads are those
            of this node.
          </>
        }
      />
      {models.error !== undefined && <ErrorState error={models.error} onRetry={models.reload} />}
      {(models.data !== undefined || models.is_loading) && (
        <SearchedTable
          caption="Models"
          plural="models"
          placeholder="Search by id or alias"
          textsOf={({ id, aliases }) => [id, ...aliases]}
          rows={models.data?.items}
          keyOf={({ id }) => id}
          empty={<EmptyState title="No models">Add one on the server with “tds model add”.</EmptyState>}
          columns={[
            {
              title: 'Model',
              is_name: true,
              cell: ({ id, aliases }) => (
                <span class="prose-cell">
                  <span class="no-break">{id}</span>
                  {aliases.length > 0 && <span class="muted"> also {aliases.join(', ')}</span>}
                </span>
              ),
              sortBy: ({ id }) => id,
            },
            { title: 'State', cell: state },
            {
              title: 'Load',
              cell: ({ engine }) =>
                engine === null ? (
                  ''
                ) : (
                  <span class="prose-cell">
                    {formatCount(engine.load.requests, 'request')}
                    <br />
                    <span class="muted">
                      {formatCount(engine.load.waiting_plans, 'plan')} waiting,{' '}
                      {formatCount(engine.load.running_tokens, 'token')} running
                    </span>
                  </span>
                ),
            },
            {
              title: 'Price (1M tokens)',
              is_at_end: true,
              cell: ({ input_price_micros_per_million_tokens: price_micros }) =>
                price_micros === null ? <span class="muted">None</span> : formatMoney(price_micros),
              sortBy: ({ input_price_micros_per_million_tokens: price_micros }) => price_micros ?? -1,
            },
            {
              ...ACTIONS,
              cell: (model) => <Actions model={model} onAsk={(what) => setAsked({ what, model })} />,
            },
          ]}
        />
      )}
      <ModelDialogs
        asked={asked}
        onClose={() => setAsked(undefined)}
        onDone={async (text) => {
          await models.reload();
          showToast(text);
        }}
      />
    </>
  );
}

function state({ status, has_weights, engine, drift_index, reload }: Model) {
  const now = engine === null ? null : STATES[engine.state];
  return (
    <span class="prose-cell">
      <span class="row">
        {status === 'live' ? (
          <Badge tone="success">Open</Badge>
        ) : (
          <Badge>{has_weights ? 'Closed' : 'Coming soon'}</Badge>
        )}
        {now !== null && <Badge tone={now.tone}>{now.text}</Badge>}
        {drift_index !== null && drift_index > STABILITY_INDEX_MAX && (
          <Badge tone="warning">Answers moved: index {formatNumber(drift_index, 2)}</Badge>
        )}
        {reload?.state === 'running' && <Badge tone="info">Reloading</Badge>}
      </span>
      {engine?.load_error != null && <span class="field-error">{engine.load_error}</span>}
      {reload?.state === 'failed' && <span class="field-error">Reload failed: {reload.error}</span>}
      {reload?.state === 'done' && reload.ended_at_ms !== null && (
        <span class="muted">
          Reloaded <Time time_ms={reload.ended_at_ms} />
        </span>
      )}
    </span>
  );
}

function Actions({
  model: { id, status, has_weights, reload },
  onAsk,
}: {
  readonly model: Model;
  readonly onAsk: (what: Asked['what']) => void;
}) {
  return (
    <span class="row at-end no-break">
      <Button size="small" label={`Change the price of ${id}`} onClick={() => onAsk('price')}>
        Price…
      </Button>
      {status === 'live' && (
        <>
          <Button
            size="small"
            label={`Reload ${id}`}
            is_busy={reload?.state === 'running'}
            onClick={() => onAsk('reload')}
          >
            Reload…
          </Button>
          <Button size="small" label={`Close ${id}`} onClick={() => onAsk('close')}>
            Close…
          </Button>
        </>
      )}
      {status !== 'live' && has_weights && (
        <Button size="small" label={`Open ${id}`} onClick={() => onAsk('open')}>
          Open…
        </Button>
      )}
    </span>
  );
}

function ModelDialogs({
  asked,
  onClose,
  onDone,
}: {
  readonly asked: Asked | undefined;
  readonly onClose: () => void;
  readonly onDone: (text: string) => Promise<void>;
}) {
  const id = asked?.model.id ?? '';
  const { open, close, reload } = api.operator.models;
  return (
    <>
      <PriceDialog
        model={asked?.what === 'price' ? asked.model : undefined}
        onClose={onClose}
        onDone={onDone}
      />
      <ConfirmDialog
        title={`Close ${id}?`}
        action="Close model"
        is_open={asked?.what === 'close'}
        onClose={onClose}
        onConfirm={async () => {
          await call(close.post({ id }));
          await onDone(`${id} is closed.`);
        }}
      >
        <p>Requests for it are refused as “not found” at once. Those that have begun are answered.</p>
      </ConfirmDialog>
      <ConfirmDialog
        title={`Open ${id}?`}
        action="Open model"
        is_dangerous={false}
        is_open={asked?.what === 'open'}
        onClose={onClose}
        onConfirm={async () => {
          await call(open.post({ id }));
          await onDone(`${id} is open.`);
        }}
      >
        <p>Everybody can ask it at its price. It is loaded with its first request.</p>
      </ConfirmDialog>
      <ConfirmDialog
        title={`Reload ${id}?`}
        action="Reload model"
        is_dangerous={false}
        is_open={asked?.what === 'reload'}
        onClose={onClose}
        onConfirm={async () => {
          await call(reload.post({ id }));
          await onDone(`${id} is reloading.`);
        }}
      >
        <p>
          This node reads its weights again from the same place, and requests go on meanwhile. Both sets are
          in memory for a moment. Weights that do not load change nothing.
        </p>
      </ConfirmDialog>
    </>
  );
}

function PriceDialog({
  model,
  onClose,
  onDone,
}: {
  readonly model: Model | undefined;
  readonly onClose: () => void;
  readonly onDone: (text: string) => Promise<void>;
}) {
  const price_micros = model?.input_price_micros_per_million_tokens ?? null;
  return (
    <Dialog title={`Price of ${model?.id ?? ''}`} is_open={model !== undefined} onClose={onClose}>
      <Form
        submit="Change price"
        fields={['price']}
        onCancel={onClose}
        onSubmit={async (values) => {
          if (model === undefined) return;
          const price = parseDollars(values.text('price'));
          if (price === null) {
            throw new ApiError('invalid_amount', 'Write dollars, such as 0.50.', 'price', null, 422);
          }
          await call(api.operator.models.price.post({ id: model.id, price_micros: price }));
          await onDone(`1M input tokens of ${model.id} cost ${formatMoney(price)}.`);
        }}
        onDone={onClose}
      >
        <p>
          {price_micros === null ? 'It has no price yet.' : `It is ${formatMoney(price_micros)} now.`} The
          next requests are charged the new price; those that have begun keep the one before.
        </p>
        <TextField
          label="Dollars for 1M input tokens"
          name="price"
          prefix="$"
          inputmode="decimal"
          placeholder="0.50"
          is_required
        />
      </Form>
    </Dialog>
  );
}
