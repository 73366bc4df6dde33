import { useState } from 'preact/hooks';
import { DAY_MS } from '../../../time/clock.ts';
import { store, stored } from '../browser-storage.ts';
import { Button } from '../components/button.tsx';
import { Notice } from '../components/notice.tsx';
import { Time } from '../components/time.tsx';
import type { BillingFacts } from './facts.ts';
import { TIER_REASONS } from './tier-reasons.ts';

const SHOWN_MS = 30 * DAY_MS;

/** A notice of the newest change of the tier until it is closed, which only this browser remembers. */
export function TierNotice({
  organization_id,
  facts,
}: {
  readonly organization_id: string;
  readonly facts: BillingFacts;
}) {
  const stored_as = `tds-tier-change:${organization_id}`;
  const [closed_id, setClosedId] = useState(() => Number(stored(stored_as) ?? 0));
  const newest = facts.tier_changes[0];
  if (newest === undefined || newest.id <= closed_id || newest.to_tier !== facts.tier) return null;
  if (Date.now() - newest.created_at_ms > SHOWN_MS) return null;
  const { id, from_tier, to_tier, reason, created_at_ms } = newest;
  const is_lower = to_tier < from_tier;
  const close = () => {
    setClosedId(id);
    store(stored_as, String(id));
  };
  return (
    <Notice
      tone={is_lower ? 'warning' : 'success'}
      title={
        is_lower ? `Your organization fell to Tier ${to_tier}` : `Your organization is now in Tier ${to_tier}`
      }
      actions={
        <Button size="small" onClick={close}>
          Got it
        </Button>
      }
    >
      {to_tier === 0 ? 'It lost its API access' : 'Its limits changed'} <Time time_ms={created_at_ms} />
      {TIER_REASONS[reason] === undefined ? '' : `, ${TIER_REASONS[reason]}`}.
    </Notice>
  );
}
