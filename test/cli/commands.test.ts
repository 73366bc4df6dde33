import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transact } from '../../db/sqlite/connection.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import { AccountError } from '../../src/access/account-error.ts';
import { KeyDirectory } from '../../src/accounts/key-directory.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { createProgram, runCommandLine } from '../../src/cli/program.ts';
import { secretHash } from '../../src/hashing/secret-hash.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { PaymentProviderFailed } from '../../src/payments/provider.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { TestClock } from '../accounts/support.ts';
import { adjustment, eventId, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { contextOn } from '../support/context.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { field, firstAsProcess, inProcess, tds, tdsJson, textField } from './support.ts';

setDefaultTimeout(120_000);

const root = temporaryDirectory();
const data = join(root.path, 'data');
const KEY = /^sk_svc_[A-Za-z0-9_-]{32}$/;

let first: unknown;

beforeAll(async () => {
  first = await json('init');
});

afterAll(() => root.remove());

const { command, commandJson } = firstAsProcess();

/** `tds … --data DIR --json` */
function json(...args: string[]): Promise<unknown> {
  return commandJson([...args, '--data', data]);
}

function run(...args: string[]) {
  return command([...args, '--data', data]);
}

describe('tds init', () => {
  test('makes an organization with credit, a Default project and a key that works', async () => {
    expect(first).toEqual({
      initialized: true,
      organization_id: expect.stringMatching(/^org_/),
      organization_name: 'My organization',
      default_project_id: expect.stringMatching(/^proj_/),
      owner_user_id: null,
      key_id: expect.stringMatching(/^key_/),
      key: expect.stringMatching(KEY),
    });
    expect(readdirSync(data)).not.toContain('first-api-key.txt');
    const db = openDataDirectory(data, { create: false });
    expect(
      await new KeyDirectory(new SqliteStore(db).keys, new TestClock()).authenticate(textField(first, 'key')),
    ).toMatchObject({
      key_id: textField(first, 'key_id'),
      project_id: textField(first, 'default_project_id'),
      tier: 1,
    });
    db.$client.close();
    expect(await json('org', 'list')).toContainEqual(
      expect.objectContaining({ name: 'My organization', credit_micros: 25_000_000, tier: 1 }),
    );
  });

  test('lets nobody else read the data', () => {
    expect(statSync(data).mode & 0o777).toBe(0o700);
    expect(statSync(join(data, 'tds.sqlite')).mode & 0o777).toBe(0o600);
  });

  test('says so and changes nothing when it was done before', async () => {
    const again = await run('init');
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toContain('already initialised');
    expect(again.stdout).not.toContain('sk_svc_');
    expect(await json('init')).toEqual({ initialized: false });
    expect(await json('key', 'list', '--org', 'My organization')).toHaveLength(1);
  });
});

describe('the words of the command line', () => {
  test('org create, list, credit, tier', async () => {
    const created = await json('org', 'create', 'Acme');
    expect(created).toEqual({
      id: expect.stringMatching(/^org_/),
      name: 'Acme',
      default_project_id: expect.stringMatching(/^proj_/),
      owner_user_id: null,
    });
    const id = textField(created, 'id');
    expect(await json('org', 'list')).toContainEqual(
      expect.objectContaining({ id, name: 'Acme', tier: 0, credit_micros: 0, held_micros: 0 }),
    );
    expect(await json('org', 'credit', 'Acme', '19.999999')).toMatchObject({
      credit_micros: 19_999_999,
      tier: 1,
    });
    expect(await json('org', 'credit', id, '0.000001', '--force')).toMatchObject({
      credit_micros: 20_000_000,
    });
    expect(await json('org', 'tier', 'Acme')).toMatchObject({
      tier: 1,
      minimum_tier: null,
      limits: { requests_per_minute: 300, tokens_per_minute: 300_000, questions_per_request: 32 },
      top_up_max_micros: 25_000_000,
    });
    const settings =
      '--minimum 3 --requests-per-minute 9 --tokens-per-minute 8 --questions 7 --top-up-max 600';
    const set = await json('org', 'tier', 'Acme', ...settings.split(' '));
    expect(set).toMatchObject({
      tier: 3,
      minimum_tier: 3,
      limits: { requests_per_minute: 9, tokens_per_minute: 8, questions_per_request: 7 },
      top_up_max_micros: 600_000_000,
    });
    expect(await json('org', 'tier', 'Acme')).toEqual(set);
    expect(
      await json('org', 'tier', 'Acme', '--minimum', 'none', '--requests-per-minute', 'none'),
    ).toMatchObject({
      tier: 1,
      minimum_tier: null,
      limits: { requests_per_minute: 300, tokens_per_minute: 8, questions_per_request: 7 },
    });
  });

  test('project create, list, limit, archive', async () => {
    await json('org', 'create', 'Projects');
    const created = await json('project', 'create', 'Projects', 'Triage');
    expect(created).toMatchObject({ id: expect.stringMatching(/^proj_/), name: 'Triage' });
    expect(await json('project', 'list', 'Projects')).toMatchObject([
      { name: 'Default' },
      { name: 'Triage' },
    ]);
    expect(await json('project', 'list')).toContainEqual(expect.objectContaining({ name: 'Triage' }));
    expect(await json('project', 'limit', 'Triage', '12.5')).toMatchObject({
      spend_limit_micros: 12_500_000,
    });
    expect(await json('project', 'limit', 'Triage', '0')).toMatchObject({ spend_limit_micros: 0 });
    expect(await json('project', 'limit', 'Triage', 'none')).toMatchObject({ spend_limit_micros: null });
    expect(await json('project', 'archive', 'Triage')).toMatchObject({ archived_at_ms: expect.any(Number) });
    expect(await json('project', 'list', 'Projects')).toMatchObject([{ name: 'Default' }]);
    expect(await json('project', 'list', 'Projects', '--archived')).toMatchObject([{ name: 'Triage' }]);
    expect(await run('project', 'limit', 'Triage', '1')).toMatchObject({ code: 1 });
  });

  test('key create, list, revoke', async () => {
    const project = textField(await json('org', 'create', 'Keys'), 'default_project_id');
    const created = await json('key', 'create', project, 'Server');
    expect(textField(created, 'id')).toStartWith('key_');
    expect(textField(created, 'key')).toMatch(KEY);
    const listed = await json('key', 'list', '--org', 'Keys');
    expect(listed).toMatchObject([
      { name: 'Server', display_prefix: textField(created, 'key').slice(0, 12), created_by_name: null },
    ]);
    expect(JSON.stringify(listed)).not.toContain(textField(created, 'key'));
    expect(await json('key', 'revoke', 'Server')).toMatchObject({ id: textField(created, 'id') });
    expect(await json('key', 'list', '--project', project)).toEqual([]);
    expect(await json('key', 'list', '--project', project, '--revoked')).toMatchObject([
      { id: textField(created, 'id'), revoked_at_ms: expect.any(Number) },
    ]);
  });

  test('key create --expires, expire, rotate', async () => {
    const project = textField(await json('org', 'create', 'Key times'), 'default_project_id');
    const [today, in_a_year] = [Date.now(), new Date(Date.now() + 360 * DAY_MS).toISOString().slice(0, 10)];
    const created = await json('key', 'create', project, 'Timed', '--expires', '90d');
    const expires_at_ms = Number(field(created, 'expires_at_ms'));
    expect(expires_at_ms).toBeGreaterThanOrEqual(today + 90 * DAY_MS);
    expect(expires_at_ms).toBeLessThanOrEqual(Date.now() + 90 * DAY_MS);
    const id = textField(created, 'id');
    const late = await run('key', 'expire', 'Timed', '2020-01-31');
    expect(late).toMatchObject({
      code: 1,
      stderr: 'tds: A key can expire at a time in the next ten years.\n',
    });
    const changed = await run('key', 'expire', 'Timed', in_a_year);
    expect(changed.stdout).toBe(`${id} works until ${in_a_year}T00:00:00Z.\n`);
    expect((await run('key', 'list', '--project', project)).stdout).toContain(`${in_a_year}T00:00:00Z`);
    const never = await run('key', 'expire', 'Timed', 'none');
    expect(never.stdout).toBe(`${id} does not expire.\n`);

    const overlapping = await json('key', 'rotate', 'Timed', '--overlap', '7d');
    const second = textField(overlapping, 'id');
    expect(overlapping).toMatchObject({ name: 'Timed', key: expect.stringMatching(KEY), replaced: { id } });
    const old_ends_at_ms = Number(field(field(overlapping, 'replaced'), 'expires_at_ms'));
    expect(old_ends_at_ms).toBeGreaterThanOrEqual(today + 7 * DAY_MS);
    expect(old_ends_at_ms).toBeLessThanOrEqual(Date.now() + 7 * DAY_MS);
    expect(await json('key', 'list', '--project', project)).toMatchObject([
      { id, expires_at_ms: old_ends_at_ms },
      { id: second, expires_at_ms: null },
    ]);
    const at_once = await run('key', 'rotate', second, '--overlap', 'none');
    expect(at_once.stdout).toContain(`\n${second} is revoked. No service was reached on ${data}`);
    expect(await json('key', 'list', '--project', project)).toMatchObject([{ id }, { name: 'Timed' }]);
  });

  test('key create --monthly-limit, limit, and rotate, which keeps the limit', async () => {
    const project = textField(await json('org', 'create', 'Key limits'), 'default_project_id');
    const created = await json('key', 'create', project, 'Limited', '--monthly-limit', '20.5');
    expect(created).toMatchObject({ monthly_limit_micros: 20_500_000 });
    const id = textField(created, 'id');
    const list = await run('key', 'list', '--project', project);
    expect(list.stdout).toContain('SPENT THIS MONTH');
    expect(list.stdout).toContain('20.500000');
    expect((await run('key', 'limit', 'Limited', '3')).stdout).toBe(
      `The monthly spend limit of ${id} is 3.000000.\n`,
    );
    const rotated = await json('key', 'rotate', 'Limited', '--overlap', 'none');
    expect(rotated).toMatchObject({ monthly_limit_micros: 3_000_000 });
    const second = textField(rotated, 'id');
    expect(await json('key', 'limit', second, '4')).toEqual({ id: second, monthly_limit_micros: 4_000_000 });
    expect(await json('key', 'list', '--project', project)).toMatchObject([
      { id: second, monthly_limit_micros: 4_000_000, spent_this_month_micros: 0 },
    ]);
    expect((await run('key', 'limit', second, 'none')).stdout).toBe(
      `The monthly spend limit of ${second} is none.\n`,
    );
    expect(await json('key', 'list', '--project', project)).toMatchObject([{ monthly_limit_micros: null }]);
    // A revoked key has no limit of its own to change.
    expect(await run('key', 'limit', id, '5')).toMatchObject({ code: 1 });
  });

  test('credit refund and history', async () => {
    await json('org', 'create', 'Refunds');
    await json('org', 'credit', 'Refunds', '25');
    expect(await json('credit', 'refund', 'Refunds', '21')).toMatchObject({
      credit_micros: 4_000_000,
      tier: 0,
    });
    expect(await json('credit', 'history', 'Refunds')).toMatchObject([
      { kind: 'tier_change', from_tier: 1, to_tier: 0 },
      { kind: 'refund', amount_micros: -21_000_000, balance_micros: 4_000_000 },
      { kind: 'tier_change', from_tier: 0, to_tier: 1 },
      { kind: 'top_up', amount_micros: 25_000_000, balance_micros: 25_000_000 },
    ]);
    expect(await json('credit', 'history', 'Refunds', '--limit', '1')).toHaveLength(1);
    expect(await json('credit', 'pending', 'Refunds')).toEqual([]);
  });

  test('what is entered by hand is entered once with one --entry, and no other has its id', async () => {
    await json('org', 'create', 'Entries');
    const entry = ['--entry', 'entry_0123456789abcdef'];
    for (let round = 0; round < 2; round += 1)
      expect(await json('org', 'credit', 'Entries', '25', ...entry)).toMatchObject({
        paid_micros: 25_000_000,
      });
    expect((await run('credit', 'refund', 'Entries', '25', ...entry)).stderr).toContain(
      'in the books already',
    );
    expect(await run('credit', 'refund', 'Entries', '25', '--entry', 'pay_1')).toMatchObject({ code: 2 });
  });

  test('credit checkout, confirm and cancel: a top-up by hand is paid, or is not waited for any more', async () => {
    const organization_id = textField(await json('org', 'create', 'Checkouts'), 'id');
    const start = async () => textField(await json('credit', 'checkout', 'Checkouts', '25'), 'payment_id');
    const [paid, unpaid] = [await start(), await start()];
    expect(await json('credit', 'confirm', paid)).toMatchObject({ id: paid, status: 'completed' });
    expect(await json('credit', 'cancel', unpaid)).toEqual({ payment_id: unpaid, organization_id });
    expect(await json('credit', 'pending')).toEqual([]);
    for (const words of ['cancel', 'confirm']) {
      expect(await run('credit', words, unpaid)).toMatchObject({
        code: 1,
        stderr: 'tds: The payment is already completed or canceled.\n',
      });
    }
    expect(await json('org', 'list')).toContainEqual(
      expect.objectContaining({ id: organization_id, credit_micros: 25_000_000 }),
    );
  });

  test('credit events, assign and dismiss', async () => {
    const organization_id = textField(await json('org', 'create', 'Events'), 'id');
    const [first = '', second = ''] = ['txn_1', 'txn_2'].map((id) =>
      transaction('transaction.completed', { id }),
    );
    const db = openDataDirectory(data, { create: false });
    const context = contextOn(db);
    const [refund = '', more = ''] = ['adj_1', 'adj_2'].map((id) =>
      adjustment('adjustment.created', { id, currency_code: 'EUR' }),
    );
    for (const body of [first, second, refund, more]) {
      const call = sign(body);
      await handleWebhook(context, paddleProvider(SETTINGS), Buffer.from(call.body), call.signature);
    }
    db.$client.close();
    const events = await json('credit', 'events');
    expect(events).toBeArrayOfSize(4);
    for (const body of [first, second])
      expect(events).toContainEqual(
        expect.objectContaining({
          ...{ event_id: eventId(body), outcome: 'unresolved', amount_micros: 25_000_000 },
        }),
      );
    expect(await json('credit', 'assign', eventId(first), 'Events')).toMatchObject({
      outcome: 'assigned',
      organization_id,
    });
    expect(await json('credit', 'history', 'Events', '--limit', '1')).toMatchObject([
      { kind: 'tier_change' },
    ]);
    const assigned = [refund, more].map((body) => run('credit', 'assign', eventId(body), 'Events', '20'));
    expect((await Promise.all(assigned)).map(({ stdout }) => stdout)).toEqual([
      expect.stringContaining('was applied to'),
      expect.stringContaining('moves nothing yet: it waits'),
    ]);
    for (const body of [second, more])
      expect(await json('credit', 'dismiss', eventId(body))).toMatchObject({ outcome: 'dismissed' });
    expect(await json('credit', 'pending', 'Events')).toEqual([]);
    expect(await json('credit', 'events')).toEqual([]);
    expect(await json('credit', 'events', '--all')).toHaveLength(4);
    const own = await json('credit', 'events', 'Events');
    expect(own).toContainEqual(expect.objectContaining({ event_id: eventId(first) }));
    const cut = await run('credit', 'events', '--all', '--limit', '1', '--json');
    expect(JSON.parse(cut.stdout)).toHaveLength(1);
    expect(cut.stderr).toContain('Older events were left out');
    expect(await run('credit', 'events', '--all', '--limit', '4')).toMatchObject({ code: 0, stderr: '' });
  });

  test('model list', async () => {
    expect(await json('model', 'list')).toMatchObject([
      { id: 'chat-1', kind: 'chat', status: 'coming_soon', aliases: [] },
      {
        id: 'decision-1',
        kind: 'decision',
        status: 'live',
        input_price_micros_per_million_tokens: 500_000,
        aliases: ['jev-latest'],
      },
    ]);
  });

  test('org rename and project rename', async () => {
    const created = await json('org', 'create', 'Before');
    const [id, project] = [textField(created, 'id'), textField(created, 'default_project_id')];
    expect(await json('org', 'rename', 'Before', 'After')).toMatchObject({ id, name: 'After' });
    expect(await run('org', 'list')).toMatchObject({ stdout: expect.not.stringContaining('Before') });
    expect(await json('project', 'rename', project, 'Inbox')).toMatchObject({ id: project, name: 'Inbox' });
    await json('project', 'create', 'After', 'Taken');
    const taken = await run('project', 'rename', project, 'Taken');
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('has this name') });
    expect(await json('project', 'rename', project, 'Inbox')).toMatchObject({ name: 'Inbox' });
  });

  test('org suspend and resume, which can be said again', async () => {
    await json('org', 'create', 'Suspended');
    for (const _ of [1, 2]) {
      expect(await json('org', 'suspend', 'Suspended')).toMatchObject({
        name: 'Suspended',
        suspended_at_ms: expect.any(Number),
      });
    }
    expect((await run('org', 'suspend', 'Suspended')).stdout).toBe(
      'Suspended is suspended: the server on the data refuses its keys at once, other nodes within a minute.\n',
    );
    expect(await json('org', 'list')).toContainEqual(
      expect.objectContaining({ name: 'Suspended', suspended_at_ms: expect.any(Number) }),
    );
    expect((await run('org', 'list')).stdout).toMatch(
      /SUSPENDED *\n(?:.*\n)*.* Suspended .* \d{4}-\d\d-\d\d/,
    );
    expect(await json('org', 'resume', 'Suspended')).toMatchObject({ suspended_at_ms: null });
    expect((await run('org', 'resume', 'Suspended')).stdout).toBe(
      'Suspended is not suspended: its keys work.\n',
    );
  });

  test('lists for people have a line for each thing', async () => {
    const lists = [
      'org list',
      'project list',
      'key list',
      'credit history Acme',
      'model list',
      'org tier Acme',
    ];
    for (const words of lists) {
      const result = await run(...words.split(' '));
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(result.stdout.split('\n').length).toBeGreaterThan(2);
    }
  });

  test('the data directory also comes from TDS_DATA, and is ./data without that', async () => {
    const env = { TDS_DATA: data };
    expect((await tds(['model', 'list', '--json'], { env })).code).toBe(0);
    expect((await tds(['model', 'list', '--json'], { cwd: root.path })).code).toBe(0);
  });
});

describe('owners and members', () => {
  /** Creates a user, and returns its id. */
  async function user(email: string, name: string): Promise<string> {
    return textField(field(await json('user', 'create', email, name), 'user'), 'id');
  }

  test('user create gives a personal organization with its owner; user list', async () => {
    const created = await json('user', 'create', ' Grace@Example.com', 'Grace');
    const organization = textField(field(created, 'organization'), 'id');
    expect(await json('member', 'list', organization)).toMatchObject([
      { email: 'grace@example.com', role: 'owner' },
    ]);
    expect(await json('user', 'list')).toContainEqual(
      expect.objectContaining({ email: 'grace@example.com', name: 'Grace' }),
    );
    const again = await run('user', 'create', 'grace@example.com', 'Grace');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('has this email address') });
  });

  test('org create --owner: the organization has its owner from the beginning', async () => {
    const id = await user('ada@example.com', 'Ada');
    const created = await json('org', 'create', 'Owned', '--owner', 'ADA@example.com');
    expect(created).toMatchObject({ owner_user_id: id });
    expect(await json('member', 'list', 'Owned')).toMatchObject([{ user_id: id, role: 'owner' }]);
  });

  test('org create --owner of nobody creates nothing', async () => {
    const refused = await run('org', 'create', 'Nobody’s', '--owner', 'nobody@example.com');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toBe(
      'tds: There is no user nobody@example.com: create one first with "tds user create".\n',
    );
    expect(JSON.stringify(await json('org', 'list'))).not.toContain('Nobody’s');
  });

  test('org create without --owner says how to give it one, and that works', async () => {
    await user('linus@example.com', 'Linus');
    const created = await run('org', 'create', 'Orphan');
    const [advice = ''] = /tds member add org_\w+ EMAIL owner/.exec(created.stdout) ?? [];
    await json(...advice.replace('EMAIL', 'linus@example.com').split(' ').slice(1));
    expect(await json('member', 'list', 'Orphan')).toMatchObject([{ role: 'owner' }]);
  });

  test('member add, role, remove; one owner always stays', async () => {
    await user('first@example.com', 'First');
    await user('second@example.com', 'Second');
    await json('org', 'create', 'Members');
    const early = await run('member', 'add', 'Members', 'first@example.com', 'admin');
    expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining('must be an owner') });
    await json('member', 'add', 'Members', 'first@example.com', 'owner');
    await json('member', 'add', 'Members', 'second@example.com', 'reader');
    const last = [
      ['role', 'Members', 'first@example.com', 'admin'],
      ['remove', 'Members', 'first@example.com'],
    ];
    for (const words of last) {
      const refused = await run('member', ...words);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('at least one owner') });
    }
    expect(await json('member', 'role', 'Members', 'second@example.com', 'owner')).toMatchObject({
      role: 'owner',
    });
    expect((await run('member', 'remove', 'Members', 'first@example.com')).stdout).toBe(
      'first@example.com is no member of Members any more; open invitations that they sent are revoked.\n',
    );
    expect(await json('member', 'list', 'Members')).toMatchObject([
      { email: 'second@example.com', name: 'Second', role: 'owner' },
    ]);
    expect(await run('member', 'role', 'Members', 'second@example.com', 'king')).toMatchObject({ code: 2 });
  });

  test('a list is whole without --limit; with it standard error says that rows are left out', async () => {
    await user('one@example.com', 'One');
    await user('two@example.com', 'Two');
    const project = textField(await json('org', 'create', 'Long'), 'default_project_id');
    await json('member', 'add', 'Long', 'one@example.com', 'owner');
    await json('member', 'add', 'Long', 'two@example.com', 'reader');
    await json('project', 'create', 'Long', 'Second');
    for (const name of ['One', 'Two']) await json('key', 'create', project, name);
    const lists = ['member list Long', 'project list Long', 'key list --org Long', 'org list', 'user list'];
    for (const words of lists) {
      const asked = [...words.split(' '), '--json'];
      const whole = await run(...asked);
      const rows: readonly unknown[] = JSON.parse(whole.stdout);
      expect(rows.length).toBeGreaterThan(1);
      expect(await run(...asked, '--limit', String(rows.length))).toEqual(whole);
      const cut = await run(...asked, '--limit', '1');
      expect(JSON.parse(cut.stdout)).toEqual(rows.slice(0, 1));
      expect([whole.stderr, cut.stderr]).toEqual([
        '',
        `tds: Only the first 1 of ${rows.length} are listed.\n`,
      ]);
    }
    expect(await run('user', 'list', '--limit', '0')).toMatchObject({ code: 2, stdout: '' });
  });

  test('key create and revoke --as a person: what the role allows, and the creator is noted', async () => {
    const emails = ['owner', 'admin', 'developer', 'billing', 'reader'].map((role) => ({
      role,
      email: `${role}@keys.example.com`,
    }));
    await json('org', 'create', 'By people');
    const project = textField(await json('project', 'create', 'By people', 'Their keys'), 'id');
    const operators = textField(await json('key', 'create', project, 'Of the operator'), 'id');
    for (const { role, email } of emails) {
      await user(email, role);
      await json('member', 'add', 'By people', email, role);
    }
    for (const { role, email } of emails) {
      const created = await run('key', 'create', project, `Key of ${role}`, '--as', email);
      const may_create = ['owner', 'admin', 'developer'].includes(role);
      expect([role, created.code]).toEqual([role, may_create ? 0 : 1]);
      if (!may_create) expect(created.stderr).toBe('tds: Your role does not allow this.\n');
    }
    expect(await json('key', 'list', '--project', project)).toMatchObject([
      { name: 'Of the operator', created_by_name: null },
      { name: 'Key of owner', created_by_name: 'owner' },
      { name: 'Key of admin', created_by_name: 'admin' },
      { name: 'Key of developer', created_by_name: 'developer' },
    ]);
    for (const role of ['developer', 'billing', 'reader']) {
      const refused = await run('key', 'revoke', operators, '--as', `${role}@keys.example.com`);
      expect(refused).toMatchObject({ code: 1, stderr: 'tds: Your role does not allow this.\n' });
    }
    await json('key', 'revoke', 'Key of developer', '--as', 'developer@keys.example.com');
    await json('key', 'revoke', operators, '--as', 'admin@keys.example.com');
    expect(await json('key', 'list', '--project', project)).toHaveLength(2);
    const stranger = await run('key', 'create', project, 'Not theirs', '--as', 'grace@example.com');
    expect(stranger).toMatchObject({ code: 1, stderr: 'tds: There is no such project.\n' });
  });

  test('init with an owner, also of a variable, makes the first organization the personal one of its first user', async () => {
    const directory = join(root.path, 'owned');
    const env = { TDS_OWNER: 'Ada.L@example.com' };
    const { stdout } = await command(['init', '--data', directory, '--json'], { env });
    const created: unknown = JSON.parse(stdout);
    expect(await commandJson(['user', 'list', '--data', directory])).toMatchObject([
      { id: textField(created, 'owner_user_id'), email: 'ada.l@example.com', name: 'Ada.L' },
    ]);
    expect(await commandJson(['org', 'list', '--data', directory])).toMatchObject([
      { id: textField(created, 'organization_id'), name: 'My organization', credit_micros: 25_000_000 },
    ]);
    const organization = textField(created, 'organization_id');
    expect(await commandJson(['member', 'list', organization, '--data', directory])).toMatchObject([
      { role: 'owner' },
    ]);
  });

  test('init --owner with an address that is none fills nothing', async () => {
    const directory = join(root.path, 'no-address');
    const refused = await command(['init', '--data', directory, '--owner', 'ada']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('not an email address') });
    expect(existsSync(directory)).toBe(false);
  });

  test('init on a terminal asks for the owner, again when it is no address, and takes none for an answer', async () => {
    const asked = await initOnTerminal('asked', ['ada\n', 'ada@example.com\n']);
    expect(asked.printed).toContain('This is not an email address.');
    expect(await commandJson(['user', 'list', '--data', asked.directory])).toMatchObject([
      { email: 'ada@example.com' },
    ]);
    const none = await initOnTerminal('none-given', ['\n']);
    expect(none.printed).toContain('It has no owner yet');
    expect(await commandJson(['user', 'list', '--data', none.directory])).toEqual([]);
  });
});

/** `tds init` at a terminal where a person gives these answers, one a question. */
async function initOnTerminal(name: string, answers: readonly string[]) {
  const directory = join(root.path, name);
  let printed = '';
  let given = 0;
  const decoder = new TextDecoder();
  const child = Bun.spawn([process.execPath, MAIN, 'init', '--data', directory], {
    terminal: {
      cols: 500,
      data(terminal, bytes) {
        printed += decoder.decode(bytes, { stream: true });
        const questions = printed.split('(empty for none):').length - 1;
        for (; given < questions; given += 1) terminal.write(answers[given] ?? '\u0004');
      },
    },
  });
  expect(await child.exited).toBe(0);
  return { directory, printed };
}

describe('the catalog', () => {
  const catalog = join(root.path, 'catalog');
  const model = (...words: string[]) => command(['model', ...words, '--data', catalog]);
  const models = () => commandJson(['model', 'list', '--data', catalog]);
  beforeAll(async () => {
    await commandJson(['init', '--data', catalog]);
  });

  test('model add: it is coming soon, and no engine answers for it, so it cannot be opened', async () => {
    const described = ['--description', 'Another one.', '--context', '4096', '--price', '0.75'];
    expect(await model('add', 'decision-2', 'decision', ...described)).toMatchObject({ code: 0, stderr: '' });
    expect(await models()).toContainEqual({
      id: 'decision-2',
      kind: 'decision',
      status: 'coming_soon',
      description: 'Another one.',
      context_tokens: 4_096,
      input_price_micros_per_million_tokens: 750_000,
      released_at_ms: null,
      aliases: [],
      // No service runs on the data directory.
      state: null,
      drift_index: null,
      load_error: null,
      memory_bytes: null,
    });
    for (const id of ['decision-2', 'chat-1']) {
      expect(await model('open', id)).toEqual({
        code: 1,
        stdout: '',
        stderr: `tds: ${id} cannot be opened: this service has no engine that answers for it.\n`,
      });
    }
    expect(await model('add', 'decision-2', 'decision', ...described)).toMatchObject({ code: 1 });
  });

  test('model close, open, price', async () => {
    const status = async () => {
      const list = await models();
      return Array.isArray(list) ? list.find((row) => field(row, 'id') === 'decision-1') : undefined;
    };
    const before = await status();
    await model('close', 'decision-1');
    expect(await status()).toMatchObject({ status: 'coming_soon' });
    await model('open', 'decision-1');
    expect(await status()).toEqual(before);
    expect(await model('price', 'decision-1', '0.25')).toMatchObject({ code: 0 });
    expect(await status()).toMatchObject({ input_price_micros_per_million_tokens: 250_000 });
    expect(await model('price', 'decision-1', '1000.000001')).toMatchObject({ code: 1 });
    expect(await model('price', 'decision-9', '1')).toMatchObject({ code: 1 });
  });

  test('model alias: listed with its model, moved, and taken away; no alias is an id', async () => {
    expect(await model('alias', 'other', 'decision-1')).toMatchObject({ code: 0, stderr: '' });
    expect(await models()).toContainEqual(
      expect.objectContaining({ id: 'decision-1', aliases: ['jev-latest', 'other'] }),
    );
    await model('alias', 'jev-latest', 'chat-1');
    expect(await models()).toContainEqual(expect.objectContaining({ id: 'chat-1', aliases: ['jev-latest'] }));
    const refused = [
      ['alias', 'decision-1', 'chat-1'],
      ['alias', 'jev-1', 'decision-9'],
      ['alias', 'two words', 'decision-1'],
      ['add', 'jev-latest', 'decision', '--description', 'An alias has this name.'],
      ['alias', 'jev-0', 'none'],
    ];
    for (const words of refused) {
      const { code, stderr } = await model(...words);
      expect([words, code]).toEqual([words, 1]);
      expect(stderr).toMatch(/^tds: [^\n]+\.\n$/);
    }
    await model('alias', 'jev-latest', 'none');
    expect(JSON.stringify(await models())).not.toContain('jev-latest');
  });
});

describe('tds usage export', () => {
  async function organizationWithUsage(name: string) {
    const organization = await json('org', 'create', name);
    const project_id = textField(organization, 'default_project_id');
    const api_key_id = textField(await json('key', 'create', project_id, `${name} key`), 'id');
    const db = openDataDirectory(data, { create: false });
    transact(db, () => {
      const usage = new UsageWriter(db);
      for (const [request_id, day] of [
        ['req_1', 1],
        ['req_2', 2],
        ['req_3', 3],
      ] as const) {
        usage.record({
          request_id: `${request_id}_${name}`,
          time_ms: Date.UTC(2026, 0, day),
          organization_id: textField(organization, 'id'),
          project_id,
          api_key_id,
          model: 'decision-1',
          mode: 'fast',
          endpoint: '/v1/decisions',
          status: 502,
          questions: 0,
          input_tokens: 0,
          cost_micros: 0,
          latency_ms: 1,
        });
      }
    });
    db.$client.close();
    return { project_id, api_key_id };
  }

  function requestIds(csv: string): string[] {
    return csv
      .trimEnd()
      .split(/\r?\n/)
      .slice(1)
      .map((line) => line.split(',').at(-1) ?? '');
  }

  test('prints rows newest first, of one organization, project, key and time', async () => {
    const { project_id, api_key_id } = await organizationWithUsage('Usage');
    const all = ['req_3_Usage', 'req_2_Usage', 'req_1_Usage'];
    const exported = await run('usage', 'export', '--org', 'Usage');
    expect(exported).toMatchObject({ code: 0, stderr: '' });
    expect(exported.stdout).toStartWith('time_utc,model,mode,endpoint,project,api_key,status,');
    expect(requestIds(exported.stdout)).toEqual(all);
    expect(requestIds((await run('usage', 'export', '--project', project_id)).stdout)).toEqual(all);
    expect(requestIds((await run('usage', 'export', '--key', api_key_id)).stdout)).toEqual(all);
    expect(requestIds((await run('usage', 'export', '--key', 'Usage key')).stdout)).toEqual(all);
    const range = ['--from', '2026-01-02', '--to', '2026-01-03T00:00:00Z'];
    expect(requestIds((await run('usage', 'export', '--org', 'Usage', ...range)).stdout)).toEqual([
      'req_2_Usage',
    ]);
    for (const [flag, same, other] of [
      ['--model', 'decision-1', 'decision-2'],
      ['--mode', 'fast', 'consistent'],
      ['--status', '502', '200'],
    ] as const) {
      const exportedWith = async (value: string) =>
        requestIds((await run('usage', 'export', '--org', 'Usage', flag, value)).stdout);
      expect([flag, await exportedWith(same), await exportedWith(other)]).toEqual([flag, all, []]);
    }
    await organizationWithUsage('Other');
    const of_all = requestIds((await run('usage', 'export')).stdout);
    expect(of_all).toEqual(expect.arrayContaining([...all, 'req_1_Other']));
  });

  test('writes a file of its own, whole or not at all', async () => {
    await organizationWithUsage('File');
    const directory = join(root.path, 'exports');
    mkdirSync(directory);
    const file = join(directory, 'usage.csv');
    expect(await run('usage', 'export', '--org', 'File', '--output', file)).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(requestIds(readFileSync(file, 'utf8'))).toHaveLength(3);
    const refused = await run(
      'usage',
      'export',
      '--org',
      'File',
      '--output',
      join(directory, 'none', 'x.csv'),
    );
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^tds: .*cannot be written.*\.\n$/);
    expect(readdirSync(directory)).toEqual(['usage.csv']);
  });

  test('what is pruned is in the daily totals, as before, and the export says so', async () => {
    await organizationWithUsage('Pruned');
    const daily = () => run('usage', 'daily', '--org', 'Pruned');
    const before = await daily();
    expect(before.stdout.trimEnd().split('\r\n')).toEqual([
      'day_utc,organization,project,api_key,model,mode,endpoint,status,requests,questions,input_tokens,cost_usd',
      ...[3, 2, 1].map(
        (day) => `2026-01-0${day},Pruned,Default,Pruned key,decision-1,fast,/v1/decisions,502,1,0,0,0.000000`,
      ),
    ]);
    expect(await json('usage', 'prune', '--before', '2026-01-03')).toMatchObject({ is_stopped: false });
    expect(await daily()).toEqual(before);
    const exported = await run('usage', 'export', '--org', 'Pruned');
    expect(requestIds(exported.stdout)).toEqual(['req_3_Pruned']);
    expect(exported.stderr).toBe(
      '2 requests up to 2026-01-02 were rolled up into daily totals: see "tds usage daily".\n',
    );
    expect(await run('usage', 'prune', '--before', '2026-01-03')).toMatchObject({
      code: 0,
      stdout: '0 requests were rolled up into daily totals.\n',
      stderr: '',
    });
    const too_late = await run('usage', 'prune', '--before', '2100-01-01');
    expect(too_late).toMatchObject({ code: 1, stdout: '' });
    expect(too_late.stderr).toContain('Usage of this UTC month is kept');
  });

  test('a prune that is stopped says so, also by its exit code, and keeps what it has not rolled up', async () => {
    const directory = join(root.path, 'stopped');
    const created = await commandJson(['init', '--data', directory]);
    const db = openDataDirectory(directory, { create: false });
    // Batches that take far longer than the signal.
    const requests = 100_000;
    const [organization_id, project_id, key_id] = ['organization_id', 'default_project_id', 'key_id'].map(
      (name) => textField(created, name),
    );
    db.$client.run(
      `WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ?1)
       INSERT INTO usage_records SELECT 'req_' || number, ?2 + number, ?3, ?4, ?5, 'decision-1', 'fast',
         '/v1/decisions', 502, 0, 0, 0, 1.0 FROM numbers`,
      [requests, Date.UTC(2026, 0, 1), organization_id ?? '', project_id ?? '', key_id ?? ''],
    );
    let printed = '';
    const decoder = new TextDecoder();
    const begun = Promise.withResolvers<void>();
    const told = Promise.withResolvers<number>();
    const prune = ['usage', 'prune', '--before', '2026-01-03', '--data', directory];
    const child = Bun.spawn([process.execPath, MAIN, ...prune], {
      terminal: {
        cols: 200,
        data(_terminal, bytes) {
          printed += decoder.decode(bytes, { stream: true });
          if (printed.includes(' requests')) begun.resolve();
          const sentence =
            /(\d+) requests were rolled up into daily totals before it was stopped, and more are left\./;
          const count = sentence.exec(printed)?.[1];
          if (count !== undefined) told.resolve(Number(count));
        },
      },
    });
    await Promise.race([begun.promise, child.exited]);
    child.kill('SIGTERM');
    expect([await child.exited, printed]).toEqual([143, expect.any(String)]);
    const rolled_up = await told.promise;
    expect(db.$client.query('SELECT count(*) AS left FROM usage_records').get()).toEqual({
      left: requests - rolled_up,
    });
    expect(rolled_up).toBeGreaterThan(0);
    expect(rolled_up).toBeLessThan(requests);
    db.$client.close();
  });
});

describe('tds audit', () => {
  test('exits with 0 on sound books and with 1 when a balance is not what the ledger says', async () => {
    const directory = join(root.path, 'audit');
    await commandJson(['init', '--data', directory]);
    expect(await command(['audit', '--data', directory])).toMatchObject({ code: 0, stderr: '' });
    const db = openDataDirectory(directory, { create: false });
    db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
    db.$client.close();
    expect(await command(['audit', '--data', directory])).toMatchObject({ code: 1 });
    const report = await command(['audit', '--data', directory, '--json']);
    expect(report.code).toBe(1);
    expect(JSON.parse(report.stdout)).toMatchObject({ ok: false });
  });
});

describe('an organization without an owner', () => {
  test('is a warning of the audit, which exits with 0, until it has one', async () => {
    const directory = join(root.path, 'ownerless');
    const organization_id = textField(await commandJson(['init', '--data', directory]), 'organization_id');
    const report = await command(['audit', '--data', directory]);
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(report.stdout).toContain('warn organization_has_owner');
    expect(report.stdout).toContain('The audit is clean.');
    expect(await commandJson(['audit', '--data', directory])).toMatchObject({
      ok: true,
      warnings: [{ name: 'organization_has_owner', violations: [{ organization_id }] }],
    });
    await commandJson(['user', 'create', 'ada@example.com', 'Ada', '--data', directory]);
    await commandJson(['member', 'add', organization_id, 'ada@example.com', 'owner', '--data', directory]);
    const clean = await command(['audit', '--data', directory]);
    expect(clean.code).toBe(0);
    expect(clean.stdout).not.toContain('warn');
  });
});

describe('beside a running service', () => {
  test('changes are seen: a new key at once, a revocation and new limits within 60 seconds', async () => {
    const project = textField(await json('org', 'create', 'Running'), 'default_project_id');
    const clock = new TestClock();
    const db = openDataDirectory(data, { create: false });
    const keys = new KeyDirectory(new SqliteStore(db).keys, clock);
    const key = textField(await json('key', 'create', project, 'Live'), 'key');
    expect(await keys.authenticate(key)).toMatchObject({ tier: 0, limits: null });
    await json('org', 'credit', 'Running', '5');
    expect(await keys.authenticate(key)).toMatchObject({ tier: 1, limits: { requests_per_minute: 300 } });
    await json('org', 'tier', 'Running', '--requests-per-minute', '7');
    clock.advance(60_000);
    expect(await keys.authenticate(key)).toMatchObject({ limits: { requests_per_minute: 7 } });
    await json('key', 'revoke', 'Live');
    clock.advance(60_000);
    expect(await keys.authenticate(key)).toBeNull();
    db.$client.close();
  });

  test('a command waits for a write of the service instead of failing', async () => {
    const db = openDataDirectory(data, { create: false });
    db.$client.run('BEGIN IMMEDIATE');
    // A wait of this process would keep the lock that it waits for.
    const waiting = tdsJson(['org', 'create', 'Patient', '--data', data]);
    const finished = await Promise.race([waiting.then(() => true), Bun.sleep(1_500).then(() => false)]);
    db.$client.run('COMMIT');
    expect(finished).toBe(false);
    expect(await waiting).toMatchObject({ name: 'Patient' });
    db.$client.close();
  });
});

describe('failures are one sentence on standard error', () => {
  const garbage = join(root.path, 'garbage');
  const file = join(root.path, 'file');
  mkdirSync(garbage, { mode: 0o700 });
  writeFileSync(join(garbage, 'tds.sqlite'), 'this is not a database', { mode: 0o600 });
  writeFileSync(file, '');

  const rows: readonly (readonly [name: string, args: readonly string[], code: number, text: RegExp])[] = [
    ['no data yet', ['org', 'list', '--data', join(root.path, 'none')], 1, /run "tds init --data .*" first/],
    ['not a directory', ['init', '--data', file], 1, /is not a directory/],
    ['below a file', ['init', '--data', join(file, 'data')], 1, /is not a directory/],
    ['not a database', ['org', 'list', '--data', garbage], 1, /is not a database: move it away/],
    [
      'no such organization',
      ['org', 'credit', 'Nobody', '5', '--data', data],
      1,
      /There is no organization "Nobody"\./,
    ],
    ['no such project', ['project', 'archive', 'proj_none', '--data', data], 1, /There is no project/],
    ['no such key', ['key', 'revoke', 'key_none', '--data', data], 1, /There is no API key/],
    [
      'an expiry that is no time',
      ['key', 'create', 'Default', 'Late', '--expires', 'tomorrow', '--data', data],
      2,
      /Give a UTC date such as 2026-01-31/,
    ],
    [
      'a rotation without an overlap',
      ['key', 'rotate', 'key_none', '--data', data],
      2,
      /--overlap <duration>/,
    ],
    [
      'a rotation of no key',
      ['key', 'rotate', 'key_none', '--overlap', '7d', '--data', data],
      1,
      /There is no API key/,
    ],
    [
      'a name that several have',
      ['project', 'archive', 'Default', '--data', data],
      1,
      /Several projects are named/,
    ],
    ['an empty name', ['org', 'create', ' ', '--data', data], 1, /A name must have 1 to 100 characters/],
    [
      'credit below the least top-up',
      ['org', 'credit', 'My organization', '4.99', '--data', data],
      1,
      /from \$5\.000000 to \$25\.000000\. Give --force/,
    ],
    [
      'credit above the tier’s range',
      ['org', 'credit', 'My organization', '25.01', '--data', data],
      1,
      /from \$5\.000000 to \$25\.000000\. Give --force/,
    ],
    ['no such event', ['credit', 'dismiss', 'evt_none', '--data', data], 1, /no such payment event/],
    [
      'an event for nobody',
      ['credit', 'assign', 'evt_none', 'Nobody', '--data', data],
      1,
      /no organization "Nobody"/,
    ],
    ['credit of nothing', ['org', 'credit', 'My organization', '0', '--data', data], 1, /amount/],
    [
      'a refund above what was paid',
      ['credit', 'refund', 'My organization', '26', '--data', data],
      1,
      /is left to refund/,
    ],
    [
      'a tier that is none',
      ['org', 'tier', 'My organization', '--minimum', '6', '--data', data],
      1,
      /from 0 to 5/,
    ],
    ['no such payment', ['credit', 'confirm', 'pay_none', '--data', data], 1, /no such manual payment/],
    ['no such top-up', ['credit', 'cancel', 'pay_none', '--data', data], 1, /no payment pay_none/],
    ['an unknown command', ['organization'], 2, /unknown command/],
    ['an unknown option', ['org', 'list', '--jsn'], 2, /unknown option/],
    ['a missing argument', ['org', 'create'], 2, /missing required argument/],
    ['too many arguments', ['org', 'create', 'a', 'b', '--data', data], 2, /too many arguments/],
    ['dollars that are none', ['org', 'credit', 'Acme', '$5'], 2, /Give dollars such as/],
    ['more digits than a micro-dollar', ['org', 'credit', 'Acme', '0.0000001'], 2, /Give dollars such as/],
    ['a number that is none', ['org', 'tier', 'Acme', '--minimum', 'two'], 2, /Give a whole number/],
    ['a date that is none', ['usage', 'export', '--from', '2026-13-01'], 2, /Give a UTC date/],
    ['a time without a zone', ['usage', 'export', '--from', '2026-01-01T10:00:00'], 2, /Give a UTC date/],
  ];
  for (const [name, args, code, text] of rows) {
    test(name, async () => {
      const { stderr, ...finished } = await inProcess(args);
      expect(finished).toEqual({ code, stdout: '' });
      expect(stderr).toMatch(text);
      if (code === 1) expect(stderr).toMatch(/^tds: [^\n]+\.\n$/);
    });
  }

  test('also as a process of its own, with nothing on standard output', async () => {
    const refused = await tds(['org', 'list', '--data', join(root.path, 'none')]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^tds: There is no data [^\n]+\.\n$/);
    const misused = await tds(['org', 'list', '--jsn']);
    expect(misused).toMatchObject({ code: 2, stdout: '' });
    expect(misused.stderr).toContain("unknown option '--jsn'");
  });

  test('a payment provider that fails is told with its reason, which only the operator can mend', async () => {
    let told = '';
    const program = createProgram((text) => {
      told += text;
    });
    program.command('fail').action(() => {
      const cause = new PaymentProviderFailed('It refused the checkout.');
      throw new AccountError('payment_provider_failed', undefined, { cause });
    });
    expect([await runCommandLine(program, ['fail']), told]).toEqual([1, 'tds: It refused the checkout.\n']);
  });

  test('no command writes a secret to standard error or keeps it in the data', async () => {
    const key = textField(first, 'key');
    const misused = await run('key', 'revoke', 'key_none');
    expect(misused.stderr).not.toContain(key);
    for (const name of readdirSync(data)) {
      expect(readFileSync(join(data, name)).includes(key)).toBe(false);
    }
    expect(readFileSync(join(data, 'tds.sqlite')).includes(secretHash(key))).toBe(true);
  });
});
