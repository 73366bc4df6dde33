import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { users } from '../../db/sqlite/schema.ts';
import { cookieOf, PASSWORD, sessionOf, signedIn, signInOn, visit } from '../console/support.ts';
import { addPasskeyRow } from '../store/sign-ins.ts';
import { startChildServer } from '../support/child-server.ts';
import { takeTableAway } from '../support/faults.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { appCode } from '../support/totp.ts';
import { firstAsProcess, initializeData } from './support.ts';

setDefaultTimeout(120_000);

const directory = temporaryDirectory();
const { command } = firstAsProcess();
const run = (...args: readonly string[]) => command(['user', ...args, '--data', directory.path]);

beforeAll(async () => {
  await initializeData(directory.path);
});
afterAll(() => directory.remove());

function operators(): readonly string[] {
  const db = openDatabase(join(directory.path, 'tds.sqlite'));
  const rows = db.select().from(users).all();
  db.$client.close();
  return rows.filter(({ is_operator }) => is_operator).map(({ email }) => email);
}

test('user create makes an operator with --operator alone, and says how the password is set', async () => {
  expect((await run('create', 'ada@example.com', 'Ada')).stdout).toContain(
    '"tds user reset ada@example.com"',
  );
  expect(operators()).toEqual([]);
  expect((await run('create', 'grace@example.com', 'Grace', '--operator')).code).toBe(0);
  expect(operators()).toEqual(['grace@example.com']);
});

test('user operator gives the power of an operator and takes it', async () => {
  expect((await run('operator', 'Ada@Example.com', 'on')).stdout).toBe(
    'Ada <ada@example.com> is an operator now.\n',
  );
  expect(operators()).toEqual(['ada@example.com', 'grace@example.com']);
  expect((await run('operator', 'grace@example.com', 'off')).stdout).toBe(
    'Grace <grace@example.com> is no operator any more.\n',
  );
  expect(operators()).toEqual(['ada@example.com']);
  expect(await run('operator', 'nobody@example.com', 'on')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'tds: There is no user nobody@example.com: create one first with "tds user create".\n',
  });
});

test('user reset prints a link by which the user sets a password, once', async () => {
  const { stdout } = await run('reset', 'ada@example.com', '--public-url', 'https://tds.example.com/');
  const link = new URL(stdout.trimEnd().split('\n').at(-1) ?? '');
  expect(`${link.origin}${link.pathname}`).toBe('https://tds.example.com/console/reset');
  const db = openDatabase(join(directory.path, 'tds.sqlite'));
  const sign_in = signInOn(db);
  const token = new URLSearchParams(link.hash.slice(1)).get('token') ?? '';
  await sign_in.reset(visit(), { token, new_password: PASSWORD });
  expect(await sessionOf(sign_in, await signedIn(sign_in))).toMatchObject({ is_operator: true });
  await expect(sign_in.reset(visit(), { token, new_password: PASSWORD })).rejects.toMatchObject({
    code: 'link_ended',
  });
  await sign_in.close();
  db.$client.close();
});

test('user reset ends password and sessions, removes a second factor and passkeys, says so, and the audit log has it', async () => {
  const db = openDatabase(join(directory.path, 'tds.sqlite'));
  const sign_in = signInOn(db);
  const cookies = await signedIn(sign_in);
  const given = { email: 'ada@example.com', password: PASSWORD };
  const { app_url } = await sign_in.second_factors.begin(visit(cookies), given);
  const confirmed = await sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) });
  expect((await sign_in.signIn(visit(), given)).needs_second_factor).toBe(true);
  await addPasskeyRow(
    async (sql) => db.$client.run(sql),
    (await sessionOf(sign_in, cookieOf(confirmed.set_cookies))).user_id,
    'one',
  );
  const [said, of_passkeys, ...rest] = (await run('reset', 'ada@example.com')).stdout.split('\n');
  expect([said, of_passkeys]).toEqual([
    'The second factor is removed: the new password alone signs in.',
    '1 passkey is removed.',
  ]);
  expect(rest.join()).toContain('/console/reset#token=');
  const cookie = cookieOf(confirmed.set_cookies);
  expect(await sign_in.sessionOf(new Headers({ cookie }))).toBeNull();
  await expect(sign_in.signIn(visit(), given)).rejects.toMatchObject({ code: 'wrong_credentials' });
  const token = new URLSearchParams(new URL(rest.at(-2) ?? '').hash.slice(1)).get('token') ?? '';
  await sign_in.reset(visit(), { token, new_password: PASSWORD });
  expect((await sign_in.signIn(visit(), given)).needs_second_factor).toBe(false);
  const acts = db.$client
    .query("SELECT action, user_id FROM trail_entries WHERE action LIKE '%.remove' ORDER BY id")
    .all();
  expect(acts).toEqual([
    { action: 'passkey.remove', user_id: null },
    { action: 'second_factor.remove', user_id: null },
  ]);
  await sign_in.close();
  db.$client.close();
});

test('user reset that fails before the password has ended keeps the second factor', async () => {
  const db = openDatabase(join(directory.path, 'tds.sqlite'));
  const sign_in = signInOn(db);
  const given = { email: 'ada@example.com', password: PASSWORD };
  const cookies = await signedIn(sign_in);
  const { app_url } = await sign_in.second_factors.begin(visit(cookies), given);
  await sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) });
  const putBack = takeTableAway(directory.path, 'sign_in_accounts');
  try {
    expect((await run('reset', 'ada@example.com')).code).not.toBe(0);
  } finally {
    putBack();
  }
  expect((await sign_in.signIn(visit(), given)).needs_second_factor).toBe(true);
  await sign_in.close();
  db.$client.close();
});

test('user reset names the address of the service without a public one', async () => {
  expect((await run('reset', 'ada@example.com')).stdout).toMatch(
    /\nhttp:\/\/127\.0\.0\.1:8080\/console\/reset#token=[\w-]{43}\n$/,
  );
  // One that runs on the data directory is found there, at any port.
  const server = await startChildServer(directory.path, directory.path);
  expect((await run('reset', 'ada@example.com')).stdout).toContain(
    `\n${server.address}/console/reset#token=`,
  );
  expect(await server.stop()).toBe(0);
  const { code, stderr } = await run('reset', 'ada@example.com', '--public-url', 'tds.example.com');
  expect([code, stderr]).toEqual([2, expect.stringContaining('It must be an address such as')]);
});
