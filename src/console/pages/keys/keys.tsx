import { useState } from 'preact/hooks';
import { api, call } from '../client.ts';
import { Button } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { ErrorState, LoadedView } from '../components/states.tsx';
import { Tabs } from '../components/tabs.tsx';
import { formatCount } from '../format.ts';
import type { PageProps } from '../page.ts';
import { query, setQuery } from '../router.ts';
import { may } from '../session.ts';
import { useLoaded } from '../use-loaded.ts';
import { ActiveKeys } from './active-keys.tsx';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { countActive } from './expiry.tsx';
import { RevokedKeys } from './revoked-keys.tsx';

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
