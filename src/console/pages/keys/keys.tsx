import { useState } from 'preact/hooks';
import { type AnswerOf, api, call, type OfOrganization } from '../client.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { SearchedTable } from '../components/searched-table.tsx';
import { EmptyState, ErrorState, LoadedView } from '../components/states.tsx';
import { ACTIONS, Table } from '../components/table.tsx';
import { Tabs } from '../components/tabs.tsx';
import { Time } from '../components/time.tsx';
import { showToast } from '../components/toast.tsx';
import { formatCount, formatMoney, formatMoneyShort } from '../format.ts';
import type { PageProps } from '../page.ts';
import { query, setQuery } from '../router.ts';
import { may, session } from '../session.ts';
import { useLoaded, useLoadedPages } from '../use-loaded.ts';
import { ExpiryDialog, LimitDialog, RotateKeyDialog } from './change-key-dialogs.tsx';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { Expiry, isExpired } from './expiry.tsx';
import { KEY_COLUMNS, type Key, searchedTextsOf } from './key-columns.tsx';

const LISTS = [
  { value: 'active', label: 'Active' },
  { value: 'revoked', label: 'Revoked' },
] as const;

/** The number of remaining keys from which the page shows it. */
const FEW_LEFT = 10;

/** The organization's API keys: create, list, limit, rotate, revoke. */
export default function Keys({ params: { organization_id = '' } }: PageProps) {
  const keys = useLoaded(() => call(api.organizations({ organization_id }).keys.get({ query: {} })), []);
  const projects = useLoaded(
    () => call(api.organizations({ organization_id }).projects.get({ query: {} })),
    [],
  );
  const spend = useLoaded(() => call(api.organizations({ organization_id }).usage.keys.get()), []);
  const [is_creating, setCreating] = useState(false);
  const list = query.value.get('list') === 'revoked' ? 'revoked' : 'active';
  const left = keys.data === undefined ? null : keys.data.active_max - countActive(keys.data.items);
  const can_create = projects.data !== undefined && left !== null && left > 0;
  return (
    <>
      <PageHeader
        title="API keys"
        description="API keys authenticate requests for one project."
        actions={
          may('create_keys') && (
            <Button kind="primary" is_disabled={!can_create} onClick={() => setCreating(true)}>
              Create key
            </Button>
          )
        }
      />
      <div class="stack">
        {projects.error !== undefined && <ErrorState error={projects.error} onRetry={projects.reload} />}
        {may('create_keys') && keys.data !== undefined && left !== null && left <= FEW_LEFT && (
          <KeysLeft active_max={keys.data.active_max} left={left} />
        )}
        <Tabs
          label="Keys"
          options={LISTS}
          value={list}
          onChange={(chosen) => setQuery({ list: chosen === 'active' ? null : chosen })}
        >
          {list === 'revoked' ? (
            <RevokedKeys organization_id={organization_id} />
          ) : (
            <LoadedView loaded={keys}>
              {({ items, active_max }) => (
                <ActiveKeys
                  organization_id={organization_id}
                  keys={items}
                  spend={spend.data?.items}
                  active_max={active_max}
                  onChanged={keys.reload}
                  onCreate={can_create ? () => setCreating(true) : null}
                />
              )}
            </LoadedView>
          )}
        </Tabs>
      </div>
      <CreateKeyDialog
        organization_id={organization_id}
        projects={projects.data?.items ?? []}
        left={left ?? 0}
        is_open={is_creating}
        onCreated={keys.reload}
        onClose={() => setCreating(false)}
      />
    </>
  );
}

function KeysLeft({ active_max, left }: { readonly active_max: number; readonly left: number }) {
  if (left <= 0) {
    return (
      <Notice tone="warning" title={`You have ${active_max} active keys, which is the limit.`}>
        Revoke one that you no longer use to create another. To replace one, rotate it and let the old key end
        at once.
      </Notice>
    );
  }
  return (
    <Notice title={`You can create ${formatCount(left, 'more key')}.`}>
      The limit is {active_max} active keys across all projects.
    </Notice>
  );
}

interface ActiveKeysProps {
  readonly organization_id: string;
  readonly keys: readonly Key[];
  /** The cost of the keys that were used this month; undefined until it is known. */
  readonly spend: AnswerOf<OfOrganization['usage']['keys']['get']>['items'] | undefined;
  readonly active_max: number;
  readonly onChanged: () => Promise<void>;
  /** Null while no key can be created. */
  readonly onCreate: (() => void) | null;
}

function ActiveKeys({ organization_id, keys, spend, active_max, onChanged, onCreate }: ActiveKeysProps) {
  const [revoking, setRevoking] = useState<Key>();
  const [rotating, setRotating] = useState<Key>();
  const [expiring, setExpiring] = useState<Key>();
  const [limiting, setLimiting] = useState<Key>();
  const own_user_id = session.value.state === 'signed_in' ? session.value.user.id : null;
  const mayRevoke = (key: Key) => may('revoke_any_key') || key.created_by_user_id === own_user_id;
  // A limit also counts the spend of the keys that this one replaced.
  const spentBy = ({ id, monthly_limit_micros, spent_this_month_micros }: Key) =>
    monthly_limit_micros === null ? (costs.get(id) ?? 0) : spent_this_month_micros;
  const mayChange = (key: Key) =>
    !isExpired(key) &&
    (may('revoke_any_key') || (may('create_keys') && key.created_by_user_id === own_user_id));
  const costs = new Map(spend?.map(({ api_key_id, cost_micros }) => [api_key_id, cost_micros]));
  return (
    <>
      <SearchedTable
        caption="Active API keys"
        plural="keys"
        placeholder="Search by name, project, creator or prefix"
        textsOf={searchedTextsOf}
        is_dense
        rows={keys}
        keyOf={({ id }) => id}
        empty={
          may('create_keys') ? (
            <EmptyState
              title="No active keys"
              actions={
                onCreate !== null && (
                  <Button kind="primary" onClick={onCreate}>
                    Create a key
                  </Button>
                )
              }
            >
              A program needs a key to ask. It is shown once, when it is created.
            </EmptyState>
          ) : (
            <EmptyState title="No active keys">Owners, admins and developers can create keys.</EmptyState>
          )
        }
        columns={[
          ...KEY_COLUMNS,
          {
            title: 'Last used',
            cell: ({ last_used_at_ms }) => <Time time_ms={last_used_at_ms} />,
            sortBy: ({ last_used_at_ms }) => last_used_at_ms ?? 0,
          },
          {
            title: 'This month',
            is_at_end: true,
            cell: (key: Key) => {
              if (spend === undefined) return null;
              const spent = <Spent spent_micros={spentBy(key)} limit_micros={key.monthly_limit_micros} />;
              if (!mayChange(key)) return spent;
              return (
                <Button kind="quiet" size="small" onClick={() => setLimiting(key)}>
                  {spent}
                  <span class="visually-hidden">: change the monthly limit of {key.name}</span>
                </Button>
              );
            },
            sortBy: spentBy,
          },
          {
            title: 'Expires',
            cell: (key: Key) =>
              mayChange(key) ? (
                <Button kind="quiet" size="small" onClick={() => setExpiring(key)}>
                  <Expiry {...key} />
                  <span class="visually-hidden">: change when {key.name} expires</span>
                </Button>
              ) : (
                <Expiry {...key} />
              ),
            sortBy: ({ expires_at_ms }) => expires_at_ms ?? Number.POSITIVE_INFINITY,
          },
          ...(keys.some(mayRevoke)
            ? [
                {
                  ...ACTIONS,
                  cell: (key: Key) =>
                    mayRevoke(key) && (
                      <span class="row-actions">
                        {mayChange(key) && (
                          <Button size="small" label={`Rotate ${key.name}`} onClick={() => setRotating(key)}>
                            Rotate…
                          </Button>
                        )}
                        <Button size="small" label={`Revoke ${key.name}`} onClick={() => setRevoking(key)}>
                          Revoke…
                        </Button>
                      </span>
                    ),
                },
              ]
            : []),
        ]}
      />
      {keys.length > 0 && (
        <p class="table-note">
          {countActive(keys)} of {active_max} active keys
        </p>
      )}
      <RotateKeyDialog
        organization_id={organization_id}
        changed={rotating}
        has_room={countActive(keys) < active_max}
        onChanged={onChanged}
        onClose={() => setRotating(undefined)}
      />
      <LimitDialog
        organization_id={organization_id}
        changed={limiting}
        onChanged={onChanged}
        onClose={() => setLimiting(undefined)}
      />
      <ExpiryDialog
        organization_id={organization_id}
        changed={expiring}
        onChanged={onChanged}
        onClose={() => setExpiring(undefined)}
      />
      <ConfirmDialog
        title="Revoke this key?"
        action="Revoke key"
        is_open={revoking !== undefined}
        onClose={() => setRevoking(undefined)}
        onConfirm={async () => {
          if (revoking === undefined) return;
          await call(api.organizations({ organization_id }).keys({ key_id: revoking.id }).delete());
          await onChanged();
          showToast(`${revoking.name} is revoked.`);
        }}
      >
        {revoking !== undefined && (
          <p>
            Programs that use <strong>{revoking.name}</strong> (<code>{revoking.display_prefix}…</code>) in{' '}
            {revoking.project_name} are refused within 60 seconds. This cannot be undone.
          </p>
        )}
      </ConfirmDialog>
    </>
  );
}

interface SpentProps {
  readonly spent_micros: number;
  readonly limit_micros: number | null;
}

function Spent({ spent_micros, limit_micros }: SpentProps) {
  return (
    <span class="number" title={formatMoney(spent_micros)}>
      {formatMoneyShort(spent_micros)}
      {limit_micros !== null && ` of ${formatMoney(limit_micros)}`}
    </span>
  );
}

function countActive(keys: readonly Key[]): number {
  return keys.filter((key) => !isExpired(key)).length;
}

function RevokedKeys({ organization_id }: { readonly organization_id: string }) {
  const revoked = useLoadedPages<Key>(
    (cursor) =>
      call(
        api
          .organizations({ organization_id })
          .keys.get({ query: { revoked: 'true', ...(cursor === null ? {} : { cursor }) } }),
      ),
    [],
  );
  return (
    <LoadedView loaded={revoked}>
      {(items) => (
        <Table
          caption="Revoked API keys"
          is_dense
          rows={items}
          keyOf={({ id }) => id}
          is_loading={revoked.is_loading}
          loadMore={revoked.loadMore}
          empty={
            <EmptyState title="No revoked keys">
              A key that is revoked or has expired, or whose project is archived, stays listed here.
            </EmptyState>
          }
          columns={[
            ...KEY_COLUMNS,
            { title: 'Last used', cell: ({ last_used_at_ms }) => <Time time_ms={last_used_at_ms} /> },
            { title: 'Revoked', cell: ({ revoked_at_ms }) => <Time time_ms={revoked_at_ms} /> },
          ]}
        />
      )}
    </LoadedView>
  );
}
