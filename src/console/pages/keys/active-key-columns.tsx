import type { AnswerOf, OfOrganization } from '../client.ts';
import { Button } from '../components/button.tsx';
import type { SortableColumn } from '../components/sortable-table.tsx';
import { ACTIONS } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { formatMoney, formatMoneyShort } from '../format.ts';
import { may, session } from '../session.ts';
import { Expiry, isExpired } from './expiry.tsx';
import { KEY_COLUMNS, type Key } from './key-columns.tsx';

/** The cost of the keys that were used this month. */
export type KeySpend = AnswerOf<OfOrganization['usage']['keys']['get']>['items'];

/** The changes of a key, each with a dialog of its own. */
export type KeyChange = 'rotate' | 'limit' | 'expiry' | 'revoke';

type OnChange = (change: KeyChange, key: Key) => void;

/** Returns the columns of active keys, in which the reader begins the changes that they may make. */
export function activeKeyColumns(
  keys: readonly Key[],
  spend: KeySpend | undefined,
  onChange: OnChange,
): readonly SortableColumn<Key>[] {
  return [
    ...KEY_COLUMNS,
    {
      title: 'Last used',
      cell: ({ last_used_at_ms }) => <Time time_ms={last_used_at_ms} />,
      sortBy: ({ last_used_at_ms }) => last_used_at_ms ?? 0,
    },
    spentColumn(spend, onChange),
    {
      title: 'Expires',
      cell: (key) =>
        mayChange(key) ? (
          <Button kind="quiet" size="small" onClick={() => onChange('expiry', key)}>
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
                    <Button size="small" label={`Rotate ${key.name}`} onClick={() => onChange('rotate', key)}>
                      Rotate…
                    </Button>
                  )}
                  <Button size="small" label={`Revoke ${key.name}`} onClick={() => onChange('revoke', key)}>
                    Revoke…
                  </Button>
                </span>
              ),
          },
        ]
      : []),
  ];
}

function spentColumn(spend: KeySpend | undefined, onChange: OnChange): SortableColumn<Key> {
  const costs = new Map(spend?.map(({ api_key_id, cost_micros }) => [api_key_id, cost_micros]));
  // A limit also counts the spend of the keys that this one replaced.
  const spentBy = ({ id, monthly_limit_micros, spent_this_month_micros }: Key) =>
    monthly_limit_micros === null ? (costs.get(id) ?? 0) : spent_this_month_micros;
  return {
    title: 'This month',
    is_at_end: true,
    cell: (key) => {
      if (spend === undefined) return null;
      const spent = <Spent spent_micros={spentBy(key)} limit_micros={key.monthly_limit_micros} />;
      if (!mayChange(key)) return spent;
      return (
        <Button kind="quiet" size="small" onClick={() => onChange('limit', key)}>
          {spent}
          <span class="visually-hidden">: change the monthly limit of {key.name}</span>
        </Button>
      );
    },
    sortBy: spentBy,
  };
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

function mayRevoke(key: Key): boolean {
  return may('revoke_any_key') || isOwn(key);
}

function mayChange(key: Key): boolean {
  return !isExpired(key) && (may('revoke_any_key') || (may('create_keys') && isOwn(key)));
}

function isOwn({ created_by_user_id }: Key): boolean {
  return session.value.state === 'signed_in' && session.value.user.id === created_by_user_id;
}
