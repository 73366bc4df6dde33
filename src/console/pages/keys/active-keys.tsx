import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { SearchedTable } from '../components/searched-table.tsx';
import { EmptyState } from '../components/states.tsx';
import { may } from '../session.ts';
import { activeKeyColumns, type KeyChange, type KeySpend } from './active-key-columns.tsx';
import { ExpiryDialog, LimitDialog, RevokeKeyDialog, RotateKeyDialog } from './change-key-dialogs.tsx';
import { countActive } from './expiry.tsx';
import { type Key, searchedTextsOf } from './key-columns.tsx';

interface ActiveKeysProps {
  readonly organization_id: string;
  readonly keys: readonly Key[];
  /** The cost of the keys that were used this month; undefined until it is known. */
  readonly spend: KeySpend | undefined;
  readonly active_max: number;
  readonly onChanged: () => Promise<void>;
  /** Null while no key can be created. */
  readonly onCreate: (() => void) | null;
}

/** The keys that work, and what changes them. */
export function ActiveKeys({
  organization_id,
  keys,
  spend,
  active_max,
  onChanged,
  onCreate,
}: ActiveKeysProps) {
  const [changing, setChanging] = useState<{ readonly change: KeyChange; readonly key: Key }>();
  const dialogOf = (change: KeyChange) => ({
    organization_id,
    changed: changing?.change === change ? changing.key : undefined,
    onChanged,
    onClose: () => setChanging(undefined),
  });
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
        empty={<NoActiveKeys onCreate={onCreate} />}
        columns={activeKeyColumns(keys, spend, (change, key) => setChanging({ change, key }))}
      />
      {keys.length > 0 && (
        <p class="table-note">
          {countActive(keys)} of {active_max} active keys
        </p>
      )}
      <RotateKeyDialog {...dialogOf('rotate')} has_room={countActive(keys) < active_max} />
      <LimitDialog {...dialogOf('limit')} />
      <ExpiryDialog {...dialogOf('expiry')} />
      <RevokeKeyDialog {...dialogOf('revoke')} />
    </>
  );
}

function NoActiveKeys({ onCreate }: Pick<ActiveKeysProps, 'onCreate'>) {
  if (!may('create_keys')) {
    return <EmptyState title="No active keys">Owners, admins and developers can create keys.</EmptyState>;
  }
  return (
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
  );
}
