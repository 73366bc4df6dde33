import { Section } from '../components/page-header.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { BillingFacts } from './facts.ts';
import { TIER_REASONS } from './tier-reasons.ts';

/** Every change of the tier, newest first. */
export function TierChanges({ tier_changes }: Pick<BillingFacts, 'tier_changes'>) {
  if (tier_changes.length === 0) return null;
  return (
    <Section title="Tier changes" description="Your tier sets your limits and your largest top-up.">
      <Table
        caption="Tier changes"
        rows={tier_changes}
        keyOf={({ id }) => String(id)}
        columns={[
          {
            title: 'What',
            is_name: true,
            cell: ({ from_tier, to_tier }) => `Tier ${from_tier} to Tier ${to_tier}`,
          },
          {
            title: 'Why',
            cell: ({ reason }) => <span class="prose-cell">{TIER_REASONS[reason] ?? reason}</span>,
          },
          { title: 'Time', cell: ({ created_at_ms }) => <Time time_ms={created_at_ms} /> },
        ]}
      />
    </Section>
  );
}
