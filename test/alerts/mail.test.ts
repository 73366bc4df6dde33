import { expect, test } from 'bun:test';
import { ALERT_PAGES } from '../../src/alerts/sentences.ts';
import { alertMail } from '../../src/console/people/alert-mail.ts';
import { Links } from '../../src/console/people/links.ts';
import { ALERT_KINDS } from '../../src/store/alert-records.ts';

const LINKS = new Links(() => 'https://tds.example.com');

test.each(ALERT_KINDS.map((kind) => [kind] as const))(
  'a mail of %s with names that look like links calls a key a key and a project a project',
  (kind) => {
    const { text } = alertMail(
      {
        id: 1,
        organization_id: 'org_1',
        organization_name: 'acme.com',
        kind,
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
      },
      LINKS,
    );
    expect(text).not.toContain('acme.com');
    const other = { keys: 'project', projects: 'API key' }[ALERT_PAGES[kind]];
    if (other !== undefined) expect(text).not.toContain(other);
  },
);
