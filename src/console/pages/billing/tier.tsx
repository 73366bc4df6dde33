import { Meter } from '../components/meter.tsx';
import { Section } from '../components/page-header.tsx';
import { type Column, Table } from '../components/table.tsx';
import { formatMoney, formatNumber } from '../format.ts';
import { chosenZone } from '../time-zone.ts';
import type { BillingFacts } from './facts.ts';
import { daysPassed, reachSentence } from './next-tier.ts';

interface LimitRow {
  readonly title: string;
  readonly now: string;
  readonly next: string;
}

/** The tier with its limits, and the progress to the next one. */
export function Tier({ facts }: { readonly facts: BillingFacts }) {
  const { tier, next_tier, minimum_tier } = facts;
  const columns: Column<LimitRow>[] = [
    { title: 'Limit', is_name: true, cell: ({ title }) => title },
    { title: `Tier ${tier}, now`, is_at_end: true, cell: ({ now }) => now },
  ];
  if (next_tier !== null) {
    columns.push({ title: `Tier ${next_tier.tier}, next`, is_at_end: true, cell: ({ next }) => next });
  }
  return (
    <Section
      title={`Tier ${tier}`}
      description={
        tier === 0
          ? 'The API opens in Tier 1.'
          : minimum_tier === tier
            ? 'The operator set this tier.'
            : 'Limits rise with what you have paid in total, and with the days since your first payment.'
      }
    >
      <div class="stack">
        {next_tier === null ? (
          <p class="muted">This is the highest tier.</p>
        ) : (
          <div class="panel padded stack">
            <p>{reachSentence(next_tier, Date.now(), chosenZone())}</p>
            <Meter
              label={`Paid in total, for Tier ${next_tier.tier}`}
              value={Math.max(0, facts.paid_micros)}
              limit={next_tier.paid_micros}
              format={formatMoney}
              is_goal
            />
            {next_tier.days > 0 && (
              <Meter
                label="Days since your first payment"
                value={daysPassed(next_tier, Date.now())}
                limit={next_tier.days}
                format={formatNumber}
                is_goal
              />
            )}
          </div>
        )}
        <Table
          caption="Limits of the tier"
          rows={limitRows(facts)}
          keyOf={({ title }) => title}
          columns={columns}
        />
      </div>
    </Section>
  );
}

function limitRows({ limits, next_tier, top_up }: BillingFacts): LimitRow[] {
  const amount = (value: number | undefined) => (value === undefined ? 'None' : formatNumber(value));
  const next = next_tier?.limits;
  return [
    {
      title: 'Requests a minute',
      now: amount(limits?.requests_per_minute),
      next: amount(next?.requests_per_minute),
    },
    {
      title: 'Tokens a minute',
      now: amount(limits?.tokens_per_minute),
      next: amount(next?.tokens_per_minute),
    },
    {
      title: 'Questions in a request',
      now: amount(limits?.questions_per_request),
      next: amount(next?.questions_per_request),
    },
    {
      title: 'Largest top-up',
      now: formatMoney(top_up.most_micros),
      next: next_tier === null ? '' : formatMoney(next_tier.top_up_max_micros),
    },
  ];
}
