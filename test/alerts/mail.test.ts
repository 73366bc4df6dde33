import { expect, test } from 'bun:test';
import { ALERT_PAGES } from '../../src/alerts/sentences.ts';
import { alertMail } from '../../src/console/people/alert-mail.ts';
import { Links } from '../../src/console/people/links.ts';
import { ALERT_KINDS, type DueAlertMail } from '../../src/store/alert-records.ts';

const LINKS = new Links(() => 'https://tds.example.com');

function mailOf(alert: Pick<DueAlertMail, 'kind'> & Partial<DueAlertMail>) {
  return alertMail(
    {
      id: 1,
      organization_id: 'org_1',
      organization_name: 'acme.com',
      subject_id: 'subject_1',
      subject_name: 'api.acme.com',
      amount_micros: 16_000_000,
      limit_micros: 20_000_000,
      from_tier: 1,
      to_tier: 2,
      expires_at_ms: 0,
      created_at_ms: 0,
      user_id: 'user_1',
      email: 'owner@example.com',
      ...alert,
    },
    LINKS,
  );
}

test.each(ALERT_KINDS.map((kind) => [kind] as const))(
  'a mail of %s with names that look like links calls a key a key and a project a project',
  (kind) => {
    const { text } = mailOf({ kind });
    expect(text).not.toContain('acme.com');
    const other = { keys: 'project', projects: 'API key' }[ALERT_PAGES[kind]];
    if (other !== undefined) expect(text).not.toContain(other);
  },
);

test.each([
  [16_000_000, '$16.00 is left. Add credit before it runs out: requests are refused without it.'],
  [0, 'The balance is $0.00. Requests are refused until somebody adds credit.'],
  [-3_000_000, 'The balance is -$3.00. Requests are refused until somebody adds credit.'],
])('a mail of low credit says whether any is left, of %d', (amount_micros, sentence) => {
  expect(mailOf({ kind: 'credit_low', amount_micros }).text).toContain(sentence);
});

test('a mail of the fall to Tier 0 says that the API is closed', () => {
  expect(mailOf({ kind: 'tier_changed', from_tier: 2, to_tier: 0 }).text).toContain(
    'You moved down from Tier 2. The API opens in Tier 1.',
  );
});
