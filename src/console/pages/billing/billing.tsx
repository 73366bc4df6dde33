import { api, call } from '../client.ts';
import { Notice } from '../components/notice.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { LoadedView } from '../components/states.tsx';
import { MoneyTile } from '../components/tile.tsx';
import { formatCount, formatMoney } from '../format.ts';
import type { PageProps } from '../page.ts';
import { useLoaded } from '../use-loaded.ts';
import { useRefresh } from '../use-refresh.ts';
import { CreditAlert } from './credit-alert.tsx';
import type { BillingFacts } from './facts.ts';
import { History } from './history.tsx';
import { Pending } from './pending.tsx';
import { Refunds } from './refunds.tsx';
import { Tier } from './tier.tsx';
import { TierChanges } from './tier-changes.tsx';
import { TierNotice } from './tier-notice.tsx';
import { TopUp } from './top-up.tsx';

/** The credit of an organization: the balance, top-ups and history, and the resulting tier. */
export default function Billing({ params: { organization_id = '' } }: PageProps) {
  const billing = useLoaded(
    () => call(api.organizations({ organization_id }).billing.get()),
    [organization_id],
  );
  useRefresh(billing.reload, (billing.data?.pending.length ?? 0) > 0);
  return (
    <>
      <PageHeader
        title="Billing"
        description="You pay in advance. Each request takes its cost from your credit."
      />
      <LoadedView loaded={billing} lines={8}>
        {(facts) => (
          <>
            <div class="stack">
              <TierNotice organization_id={organization_id} facts={facts} />
              <BalanceNotice facts={facts} />
              <Balance facts={facts} />
            </div>
            {facts.top_up.is_allowed ? (
              <TopUp organization_id={organization_id} terms={facts.top_up} onStarted={billing.reload} />
            ) : (
              <p class="aside">An owner, an admin or a billing member can add credit.</p>
            )}
            <Pending organization_id={organization_id} facts={facts} onCanceled={billing.reload} />
            {facts.top_up.is_allowed && (
              <CreditAlert
                organization_id={organization_id}
                credit_alert_micros={facts.credit_alert_micros}
                onSaved={billing.reload}
              />
            )}
            <Tier facts={facts} />
            <History organization_id={organization_id} credit_micros={facts.credit_micros} />
            <Refunds refunds={facts.refunds} />
            <TierChanges tier_changes={facts.tier_changes} />
          </>
        )}
      </LoadedView>
    </>
  );
}

function Balance({ facts }: { readonly facts: BillingFacts }) {
  const { credit_micros, held_micros, open_holds, available_micros } = facts;
  return (
    <dl class="tiles">
      <MoneyTile title="Available" micros={available_micros} />
      <MoneyTile title="Balance" micros={credit_micros} />
      <MoneyTile
        title="Held for open requests"
        micros={held_micros}
        note={open_holds === 0 ? undefined : formatCount(open_holds, 'request')}
      />
    </dl>
  );
}

function BalanceNotice({ facts: { credit_micros, tier } }: { readonly facts: BillingFacts }) {
  if (credit_micros < 0) {
    return (
      <Notice tone="warning" title="The balance is below zero">
        A refund took back credit that was already spent. Requests are refused until more than{' '}
        {formatMoney(-credit_micros)} is paid.
      </Notice>
    );
  }
  if (credit_micros === 0 && tier > 0) {
    return (
      <Notice tone="warning" title="You are out of credit">
        Requests are refused until somebody adds credit.
      </Notice>
    );
  }
  return null;
}
