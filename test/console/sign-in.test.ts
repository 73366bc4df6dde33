import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { DBTransactionAdapter } from 'better-auth';
import { AccountError } from '../../src/access/account-error.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { endSignIns } from '../../src/accounts/end-sign-ins.ts';
import { noteSecondFactor } from '../../src/accounts/second-factors.ts';
import { signUp } from '../../src/accounts/users.ts';
import { SESSION_S } from '../../src/console/people/better-auth.ts';
import { printingMailer } from '../../src/console/people/mail.ts';
import { resetLink } from '../../src/console/people/reset-link.ts';
import { SignInError } from '../../src/console/people/sign-in-error.ts';
import { TestClock } from '../accounts/support.ts';
import { appCode } from '../support/totp.ts';
import { CHEAP_PASSWORDS } from './people.ts';
import {
  addUser,
  cookieOf,
  freshAddress,
  openTestSignIn,
  PASSWORD,
  sessionOf,
  signedIn,
  type TestSignIn,
  tokenIn,
  visit,
} from './support.ts';

setDefaultTimeout(120_000);

const EMAIL = 'ada@example.com';
const NEW_PASSWORD = 'another battery staple';
const GIVEN = { name: 'Ada Lovelace', email: EMAIL, password: PASSWORD };

const refusedAs = (code: string) => expect.objectContaining({ code });

const passwordHashOf = ({ execute }: TestSignIn) => execute('SELECT password_hash FROM sign_in_accounts');
async function numberOf(
  { execute }: TestSignIn,
  table: 'sessions' | 'verifications' | 'organizations' | 'users',
): Promise<number> {
  const [row] = await execute(`SELECT count(*) AS number FROM ${table}`);
  return Number(row?.number);
}

describe('sign-up', () => {
  test('mails a link; until it is followed the password signs nobody in; then the user owns an organization', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp, store } = made;
    await sign_in.signUp(visit(), { ...GIVEN, email: ' Ada@Example.com ' });
    const mail = await smtp.next();
    expect(mail.to).toEqual([EMAIL]);
    expect(mail.headers.get('subject')).toBe('Verify your email address');
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('email_not_verified'));
    await expect(sign_in.signIn(visit(), { ...GIVEN, password: 'wrong password' })).rejects.toEqual(
      refusedAs('wrong_credentials'),
    );
    const verified = await sign_in.verify(visit(), { token: tokenIn(mail, 'verify'), password: PASSWORD });
    const session = await sessionOf(sign_in, cookieOf(verified.set_cookies));
    await signedIn(sign_in);
    expect(session).toMatchObject({
      email: EMAIL,
      name: 'Ada Lovelace',
      is_operator: false,
      set_cookies: [],
    });
    const [organization, ...more] = await store.accounts.organizationsOf(session.user_id);
    expect(more).toEqual([]);
    expect(organization).toMatchObject({ name: 'Ada Lovelace', personal_user_id: session.user_id });
    expect(made.problems).toEqual([]);
  });

  test.each([
    ['a name of nothing', { name: ' ' }, 'invalid_name'],
    ['no address', { email: 'ada' }, 'invalid_email'],
    ['an address that no mail goes to', { email: 'ada@localhost' }, 'invalid_email'],
    ['two addresses in one', { email: 'ada@example.com,eve@example.com' }, 'invalid_email'],
    ['a short password', { password: '123456789' }, 'password_too_short'],
    ['one of the most common passwords', { password: 'Password123' }, 'password_too_common'],
    ['a long password', { password: 'x'.repeat(129) }, 'password_too_long'],
  ])('refuses %s, and writes and mails nothing', async (_, change, code) => {
    await using made = await openTestSignIn();
    await expect(made.sign_in.signUp(visit(), { ...GIVEN, ...change })).rejects.toEqual(refusedAs(code));
    await made.sign_in.close();
    expect([await numberOf(made, 'users'), made.smtp.received.length]).toEqual([0, 0]);
  });

  test('with an address that has an account changes nothing, and mails its owner a link that sets a password', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const before = await passwordHashOf(made);
    await made.sign_in.signUp(visit(), { name: 'Eve', email: EMAIL, password: NEW_PASSWORD });
    const mail = await made.smtp.next();
    expect(mail.to).toEqual([EMAIL]);
    expect(mail.headers.get('subject')).toBe('You already have an account');
    expect(mail.text).not.toContain('Eve');
    expect([await passwordHashOf(made), await numberOf(made, 'users')]).toEqual([before, 1]);
    await made.sign_in.reset(visit(), { token: tokenIn(mail, 'reset'), new_password: NEW_PASSWORD });
    expect((await sessionOf(made.sign_in, await signedIn(made.sign_in, EMAIL, NEW_PASSWORD))).name).toBe(
      'Ada Lovelace',
    );
  });

  test('by invitation only is refused without one', async () => {
    await using made = await openTestSignIn();
    const sign_in = made.reopen({ sign_up: 'invited' });
    await expect(sign_in.signUp(visit(), GIVEN)).rejects.toEqual(refusedAs('invitation_needed'));
    await sign_in.close();
    expect([await numberOf(made, 'users'), made.smtp.received.length]).toEqual([0, 0]);
  });
});

describe('sign-up by an invitation', () => {
  const INVITED = { name: 'Ada Lovelace', password: NEW_PASSWORD, invitation_token: 'inv' };
  const accounts = {
    ensurePersonalOrganization: () => Promise.resolve(),
    deleteAccount: () => Promise.resolve(),
    invitedAddress: (token: string) => Promise.resolve(token === 'inv' ? EMAIL : null),
    noteSecondFactor: () => Promise.resolve(),
    notePasskey: () => Promise.resolve(),
  };

  test.each(['open', 'invited'] as const)(
    'proves the address: it signs in at once, and mails nothing, where sign-up is %s',
    async (sign_up) => {
      await using made = await openTestSignIn();
      const sign_in = made.reopen({ sign_up, accounts });
      expect(await sign_in.hasAccount(EMAIL)).toBe(false);
      const { user_id, set_cookies } = await sign_in.signUpInvited(visit(), INVITED);
      expect(await sessionOf(sign_in, cookieOf(set_cookies))).toMatchObject({
        user_id,
        email: EMAIL,
        name: 'Ada Lovelace',
        is_operator: false,
      });
      await signedIn(sign_in, EMAIL, NEW_PASSWORD);
      expect(await sign_in.hasAccount(EMAIL)).toBe(true);
      await sign_in.close();
      expect([made.smtp.received, made.problems]).toEqual([[], []]);
    },
  );

  test('takes over an account that somebody else made with the address and never verified', async () => {
    await using made = await openTestSignIn();
    const { smtp } = made;
    await made.sign_in.signUp(visit(), { ...GIVEN, name: 'Eve' });
    const token = tokenIn(await smtp.next(), 'verify');
    const sign_in = made.reopen({ accounts });
    const { set_cookies } = await sign_in.signUpInvited(visit(), INVITED);
    expect((await sessionOf(sign_in, cookieOf(set_cookies))).name).toBe('Ada Lovelace');
    expect(await numberOf(made, 'users')).toBe(1);
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('wrong_credentials'));
    await expect(sign_in.verify(visit(), { token, password: PASSWORD })).rejects.toEqual(
      refusedAs('link_ended'),
    );
  });

  test('changes nothing about a verified account, and makes none for another token', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const before = await passwordHashOf(made);
    const sign_in = made.reopen({ accounts });
    await expect(sign_in.signUpInvited(visit(), INVITED)).rejects.toEqual(refusedAs('has_account'));
    await expect(sign_in.signUpInvited(visit(), { ...INVITED, invitation_token: 'other' })).rejects.toEqual(
      refusedAs('link_ended'),
    );
    expect([await passwordHashOf(made), await numberOf(made, 'users')]).toEqual([before, 1]);
  });

  test('of several at once makes one account', async () => {
    await using made = await openTestSignIn();
    const sign_in = made.reopen({ accounts });
    const told = await Promise.all(
      Array.from({ length: 4 }, () =>
        sign_in.signUpInvited(visit(), INVITED).then(
          () => 'signed in',
          (error: unknown) => (error instanceof SignInError ? error.code : error),
        ),
      ),
    );
    expect(told.sort()).toEqual(['has_account', 'has_account', 'has_account', 'signed in']);
    expect(await numberOf(made, 'users')).toBe(1);
  });
});

describe('links', () => {
  test('verify once only, and one that was asked for again works beside the first', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), GIVEN);
    const first = tokenIn(await smtp.next(), 'verify');
    await sign_in.requestVerification(visit(), EMAIL);
    const second = tokenIn(await smtp.next(), 'verify');
    const verify = (token: string) => sign_in.verify(visit(), { token, password: PASSWORD });
    await verify(second);
    await expect(verify(second)).rejects.toEqual(refusedAs('link_ended'));
    await verify(first);
    await expect(verify(first)).rejects.toEqual(refusedAs('link_ended'));
    await sign_in.requestVerification(visit(), EMAIL);
    await sign_in.close();
    expect(smtp.received).toHaveLength(2);
  });

  test('verify with the password of the sign-up alone: a wrong one neither verifies nor uses them up', async () => {
    await using made = await openTestSignIn({ clock: new TestClock(Date.now()) });
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), GIVEN);
    const token = tokenIn(await smtp.next(), 'verify');
    const verify = (password: string) => sign_in.verify(visit(), { token, password });
    for (let times = 0; times < 10; times += 1) {
      await expect(verify(times === 0 ? '' : 'wrong password')).rejects.toEqual(refusedAs('wrong_password'));
    }
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('email_not_verified'));
    await expect(verify(PASSWORD)).rejects.toEqual(refusedAs('too_many_attempts'));
    const [row] = await made.execute('SELECT email_verified FROM users');
    expect([Boolean(row?.email_verified), await numberOf(made, 'verifications')]).toEqual([false, 1]);
    expect(await numberOf(made, 'sessions')).toBe(0);
    const { set_cookies } = await made.reopen().verify(visit(), { token, password: PASSWORD });
    await sessionOf(sign_in, cookieOf(set_cookies));
  });

  test('verify however often somebody else has guessed at the sign-in of the address', async () => {
    await using made = await openTestSignIn({ clock: new TestClock(Date.now()) });
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), GIVEN);
    const token = tokenIn(await smtp.next(), 'verify');
    const guess = () => sign_in.signIn(visit(), { ...GIVEN, password: 'wrong password' });
    for (let times = 0; times < 10; times += 1) {
      await expect(guess()).rejects.toEqual(refusedAs('wrong_credentials'));
    }
    await expect(guess()).rejects.toEqual(refusedAs('too_many_attempts'));
    const { set_cookies } = await sign_in.verify(visit(), { token, password: PASSWORD });
    expect(await sessionOf(sign_in, cookieOf(set_cookies))).toMatchObject({ email: EMAIL });
  });

  test('verify once, of several at the same time', async () => {
    await using made = await openTestSignIn();
    await made.sign_in.signUp(visit(), GIVEN);
    const token = tokenIn(await made.smtp.next(), 'verify');
    const results = await Promise.allSettled(
      [1, 2, 3].map(() => made.sign_in.verify(visit(), { token, password: PASSWORD })),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(await numberOf(made, 'sessions')).toBe(1);
  });

  test('let whoever reads the mails take the address from whoever signed up with it', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), { ...GIVEN, password: 'what Eve has chosen' });
    const token = tokenIn(await smtp.next(), 'verify');
    await sign_in.requestReset(visit(), EMAIL);
    const reset = tokenIn(await smtp.next(), 'reset');
    await sign_in.reset(visit(), { token: reset, new_password: PASSWORD });
    for (const password of ['what Eve has chosen', PASSWORD]) {
      await expect(sign_in.verify(visit(), { token, password })).rejects.toEqual(refusedAs('link_ended'));
    }
    await expect(sign_in.signIn(visit(), { ...GIVEN, password: 'what Eve has chosen' })).rejects.toEqual(
      refusedAs('wrong_credentials'),
    );
    await signedIn(sign_in);
  });

  test('reset once only, end all other links and sessions, and verify the address', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await addUser(made);
    const cookies = await signedIn(sign_in);
    await sign_in.requestReset(visit(), EMAIL);
    const [one, other] = [tokenIn(await smtp.next(), 'reset'), 'x'];
    await sign_in.requestReset(visit(), EMAIL);
    const later = tokenIn(await smtp.next(), 'reset');
    await made.execute('UPDATE users SET email_verified = FALSE');
    await expect(sign_in.reset(visit(), { token: other, new_password: NEW_PASSWORD })).rejects.toEqual(
      refusedAs('link_ended'),
    );
    await sign_in.reset(visit(), { token: one, new_password: NEW_PASSWORD });
    for (const token of [one, later]) {
      await expect(sign_in.reset(visit(), { token, new_password: PASSWORD })).rejects.toEqual(
        refusedAs('link_ended'),
      );
    }
    expect(await sign_in.sessionOf(new Headers({ cookie: cookies }))).toBeNull();
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('wrong_credentials'));
    await sessionOf(sign_in, await signedIn(sign_in, EMAIL, NEW_PASSWORD));
  });

  test('of two that set a password with one token at the same time, one does', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    await made.sign_in.requestReset(visit(), EMAIL);
    const token = tokenIn(await made.smtp.next(), 'reset');
    const results = await Promise.allSettled(
      ['first password', 'second password'].map((new_password) =>
        made.sign_in.reset(visit(), { token, new_password }),
      ),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test.each(['verify', 'reset'] as const)('that %s end with their time', async (page) => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), GIVEN);
    if (page === 'reset') {
      await smtp.next();
      await sign_in.requestReset(visit(), EMAIL);
    }
    const token = tokenIn(await smtp.next(), page);
    await made.execute(`UPDATE verifications SET expires_at_ms = ${Date.now() - 1}`);
    const used =
      page === 'verify'
        ? sign_in.verify(visit(), { token, password: PASSWORD })
        : sign_in.reset(visit(), { token, new_password: NEW_PASSWORD });
    await expect(used).rejects.toEqual(refusedAs('link_ended'));
  });

  test('are for one purpose: a link that verifies sets no password', async () => {
    await using made = await openTestSignIn();
    await made.sign_in.signUp(visit(), GIVEN);
    const token = tokenIn(await made.smtp.next(), 'verify');
    await expect(made.sign_in.reset(visit(), { token, new_password: NEW_PASSWORD })).rejects.toEqual(
      refusedAs('link_ended'),
    );
    await made.sign_in.verify(visit(), { token, password: PASSWORD });
  });

  test('work for 24 hours and one hour', async () => {
    await using made = await openTestSignIn();
    const lifetimes = async () => {
      const rows = await made.execute(
        'SELECT expires_at_ms - created_at_ms AS ms FROM verifications ORDER BY created_at_ms',
      );
      return rows.map(({ ms }) => Math.round(Number(ms) / 3_600_000));
    };
    await made.sign_in.signUp(visit(), GIVEN);
    await made.smtp.next();
    expect(await lifetimes()).toEqual([24]);
    await made.sign_in.requestReset(visit(), EMAIL);
    await made.smtp.next();
    expect(await lifetimes()).toEqual([24, 1]);
  });
});

describe('sessions', () => {
  test('are cookies for the console alone, Secure behind https only', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const { set_cookies } = await made.sign_in.signIn(visit(), GIVEN);
    expect(set_cookies).toHaveLength(1);
    expect(set_cookies[0]).toMatch(
      /^__Secure-tds\.session_token=[^;]+; Max-Age=1209600; Path=\/console; HttpOnly; Secure; SameSite=Lax$/,
    );
    const plain = await made.reopen({ is_https: false }).signIn(visit(), GIVEN);
    expect(plain.set_cookies[0]).toMatch(
      /^tds\.session_token=[^;]+; Max-Age=1209600; Path=\/console; HttpOnly; SameSite=Lax$/,
    );
  });

  test('outlive a restart, and neither another secret nor a changed cookie', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    const session = await sessionOf(made.sign_in, cookies);
    expect(await sessionOf(made.reopen(), cookies)).toEqual(session);
    const headers = new Headers({ cookie: cookies });
    expect(await made.reopen({ secret: 'b2'.repeat(32) }).sessionOf(headers)).toBeNull();
    const [name, value = ''] = cookies.split('=');
    const changed = `${name}=${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`;
    expect(await made.sign_in.sessionOf(new Headers({ cookie: changed }))).toBeNull();
    expect(await made.sign_in.sessionOf(new Headers())).toBeNull();
  });

  test('end 14 days after their last use, and are extended by it', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    const unused_ms = 600_000;
    await made.execute(
      `UPDATE sessions SET expires_at_ms = expires_at_ms - ${unused_ms}, last_seen_at_ms = last_seen_at_ms - ${unused_ms}`,
    );
    const before_ms = Date.now();
    const extended = await sessionOf(made.sign_in, cookies);
    expect(extended.expires_at_ms).toBeGreaterThanOrEqual(before_ms + SESSION_S * 1_000 - 1_000);
    expect(cookieOf(extended.set_cookies)).toBe(cookies);
    const [listed] = await made.sign_in.sessions(extended);
    expect(listed?.last_seen_at_ms).toBeGreaterThanOrEqual(before_ms);
    expect((await sessionOf(made.sign_in, cookies)).set_cookies).toEqual([]);
    await made.execute(`UPDATE sessions SET expires_at_ms = ${Date.now() - 1}`);
    expect(await made.sign_in.sessionOf(new Headers({ cookie: cookies }))).toBeNull();
    expect(await numberOf(made, 'sessions')).toBe(0);
  });

  test('are listed to their user, who ends them by id; another user’s are not there', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    await addUser(made);
    await addUser(made, 'eve@example.com');
    const first = await sign_in.signIn(visit('', '10.1.1.1', 'Phone'), GIVEN);
    const cookies = await signedIn(sign_in);
    const session = await sessionOf(sign_in, cookies);
    const eve = await sessionOf(sign_in, await signedIn(sign_in, 'eve@example.com'));
    const listed = await sign_in.sessions(session);
    expect(listed).toHaveLength(2);
    const phone = listed.find(({ is_current }) => !is_current);
    expect(phone).toMatchObject({ user_agent: 'Phone', client_address: '10.1.1.1' });
    expect(JSON.stringify(listed)).not.toMatch(/[0-9a-f]{64}/);
    for (const [who, id] of [
      [eve, session.session_id],
      [session, eve.session_id],
      [session, 'sess_none'],
    ] as const) {
      await expect(sign_in.endSession(who, id)).rejects.toEqual(
        new AccountError('not_found', 'There is no such session.'),
      );
    }
    await sign_in.endSession(session, phone?.id ?? '');
    expect(await sign_in.sessionOf(new Headers({ cookie: cookieOf(first.set_cookies) }))).toBeNull();
    await signedIn(sign_in);
    await signedIn(sign_in);
    await sign_in.endOtherSessions(session);
    expect((await sign_in.sessions(session)).map(({ id }) => id)).toEqual([session.session_id]);
    expect(await sign_in.sessions(eve)).toHaveLength(1);
  });

  test('that have ended leave the database at the next sign-in, and so do links', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    await signedIn(made.sign_in);
    await made.sign_in.requestReset(visit(), EMAIL);
    await made.smtp.next();
    for (const table of ['sessions', 'verifications'])
      await made.execute(`UPDATE ${table} SET expires_at_ms = ${Date.now() - 1}`);
    await signedIn(made.sign_in);
    expect([await numberOf(made, 'sessions'), await numberOf(made, 'verifications')]).toEqual([1, 0]);
  });

  test('that are ended while they are extended are no failure', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    await made.execute('UPDATE sessions SET expires_at_ms = expires_at_ms - 600000');
    const headers = new Headers({ cookie: cookies });
    const [, ...found] = await Promise.all([
      made.sign_in.signOut(visit(cookies)),
      ...Array.from({ length: 8 }, () => made.sign_in.sessionOf(headers)),
    ]);
    expect(found.filter((session) => session !== null && session.email !== EMAIL)).toEqual([]);
    expect(await made.sign_in.sessionOf(headers)).toBeNull();
    expect(await numberOf(made, 'sessions')).toBe(0);
  });

  test('of one user are 50 at most: the oldest end, and all that are left are listed', async () => {
    const hash = '00:00';
    const passwords = { hash: () => Promise.resolve(hash), verify: () => Promise.resolve(true) };
    await using made = await openTestSignIn({ passwords });
    await addUser(made);
    const cookies: string[] = [];
    for (let times = 0; times < 52; times += 1) cookies.push(await signedIn(made.sign_in));
    const headersOf = (index: number) => new Headers({ cookie: cookies.at(index) ?? '' });
    const newest = await sessionOf(made.sign_in, cookies.at(-1) ?? '');
    expect(await made.sign_in.sessions(newest)).toHaveLength(50);
    expect(await numberOf(made, 'sessions')).toBe(50);
    expect(await made.sign_in.sessionOf(headersOf(0))).toBeNull();
    expect(await made.sign_in.sessionOf(headersOf(2))).not.toBeNull();
  });

  test('end with a sign-out', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    const { set_cookies } = await made.sign_in.signOut(visit(cookies));
    expect(set_cookies.every((line) => /Max-Age=0; Path=\/console; HttpOnly; Secure/.test(line))).toBe(true);
    expect([cookieOf(set_cookies), await numberOf(made, 'sessions')]).toEqual(['', 0]);
    await made.sign_in.signOut(visit());
  });

  test('have a CSRF token of their own, the same at each request', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const [one, other] = [await signedIn(made.sign_in), await signedIn(made.sign_in)];
    const token = (await sessionOf(made.sign_in, one)).csrf_token;
    expect(token).toHaveLength(43);
    expect((await sessionOf(made.sign_in, one)).csrf_token).toBe(token);
    expect((await sessionOf(made.sign_in, other)).csrf_token).not.toBe(token);
  });

  test('tell whether the user is an operator', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    await made.execute('UPDATE users SET is_operator = TRUE');
    expect((await sessionOf(made.sign_in, cookies)).is_operator).toBe(true);
  });

  test('that end while a transaction of others is open stay ended when that is rolled back', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const { store, sign_in } = made;
    const cookies = await signedIn(sign_in);
    const session = await sessionOf(sign_in, cookies);
    const opened = Promise.withResolvers<void>();
    const ended = opened.promise.then(() => sign_in.endSession(session, session.session_id));
    const others = store.transaction(async (records) => {
      opened.resolve();
      // Enough turns of promises for the other statement to reach the connection.
      for (let turn = 0; turn < 1_000; turn += 1) await records.accounts.hasOrganizations();
      throw new Error('rolled back');
    });
    await expect(others).rejects.toThrow('rolled back');
    await ended;
    expect(await numberOf(made, 'sessions')).toBe(0);
  });
});

describe('the password', () => {
  test('is changed by who knows it, which ends all sessions and links and begins a new one', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    await addUser(made);
    const [cookies, other] = [await signedIn(sign_in), await signedIn(sign_in)];
    await sign_in.requestReset(visit(), EMAIL);
    const token = tokenIn(await made.smtp.next(), 'reset');
    const change = (current_password: string, new_password: string, visited = cookies) =>
      sign_in.changePassword(visit(visited), { current_password, new_password });
    await expect(change('wrong password', NEW_PASSWORD)).rejects.toEqual(refusedAs('wrong_password'));
    await expect(change(PASSWORD, 'short')).rejects.toEqual(refusedAs('password_too_short'));
    await expect(change(PASSWORD, 'x'.repeat(129))).rejects.toEqual(refusedAs('password_too_long'));
    await expect(change(PASSWORD, NEW_PASSWORD, '')).rejects.toEqual(refusedAs('not_signed_in'));
    const before = await sessionOf(sign_in, cookies);
    const { set_cookies } = await change(PASSWORD, NEW_PASSWORD);
    for (const ended of [cookies, other])
      expect(await sign_in.sessionOf(new Headers({ cookie: ended }))).toBeNull();
    const after = await sessionOf(sign_in, cookieOf(set_cookies));
    expect(after.user_id).toBe(before.user_id);
    expect(after.csrf_token).not.toBe(before.csrf_token);
    await expect(sign_in.reset(visit(), { token, new_password: PASSWORD })).rejects.toEqual(
      refusedAs('link_ended'),
    );
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('wrong_credentials'));
    await signedIn(sign_in, EMAIL, NEW_PASSWORD);
  });

  describe('that is replaced while somebody uses the one before', () => {
    /** Passwords of which one check waits at a gate, after the hash was read. */
    function heldPasswords() {
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      let holds = false;
      return {
        passwords: {
          hash: CHEAP_PASSWORDS.hash,
          async verify(given: { readonly hash: string; readonly password: string }) {
            if (holds) {
              holds = false;
              reached.resolve();
              await gate.promise;
            }
            return await CHEAP_PASSWORDS.verify(given);
          },
        },
        /** Begins something that checks a password, and resolves when it does. */
        async hold<Result>(work: () => Promise<Result>) {
          holds = true;
          const result = work().catch((error: unknown) => error);
          await reached.promise;
          return { result };
        },
        open: () => gate.resolve(),
      };
    }

    async function resetByMail({ sign_in, smtp }: TestSignIn): Promise<void> {
      await sign_in.requestReset(visit(), EMAIL);
      const token = tokenIn(await smtp.next(), 'reset');
      await sign_in.reset(visit(), { token, new_password: NEW_PASSWORD });
    }

    test.each(['change', 'reset'] as const)('by a %s: a sign-in makes no session', async (way) => {
      const { passwords, hold, open } = heldPasswords();
      await using made = await openTestSignIn({ passwords });
      const { sign_in } = made;
      await addUser(made);
      const cookies = await signedIn(sign_in);
      const { result } = await hold(() => sign_in.signIn(visit(), GIVEN));
      if (way === 'reset') await resetByMail(made);
      else {
        const given = { current_password: PASSWORD, new_password: NEW_PASSWORD };
        const { set_cookies } = await sign_in.changePassword(visit(cookies), given);
        await sessionOf(sign_in, cookieOf(set_cookies));
      }
      open();
      expect(await result).toEqual(refusedAs('wrong_credentials'));
      expect(await numberOf(made, 'sessions')).toBe(way === 'reset' ? 0 : 1);
    });

    test('by a reset: a change of the password does not undo it', async () => {
      const { passwords, hold, open } = heldPasswords();
      await using made = await openTestSignIn({ passwords });
      await addUser(made);
      const cookies = await signedIn(made.sign_in);
      const given = { current_password: PASSWORD, new_password: 'what Eve would like' };
      const { result } = await hold(() => made.sign_in.changePassword(visit(cookies), given));
      await resetByMail(made);
      open();
      expect(await result).toEqual(refusedAs('wrong_password'));
      expect(await numberOf(made, 'sessions')).toBe(0);
      await signedIn(made.sign_in, EMAIL, NEW_PASSWORD);
    });

    /** Turns the second factor on, and returns the cookies of the session that did. */
    async function turnOnSecondFactor({ second_factors }: TestSignIn['sign_in'], cookies: string) {
      const { app_url } = await second_factors.begin(visit(cookies), { password: PASSWORD });
      const { set_cookies } = await second_factors.confirm(visit(cookies), { code: appCode(app_url) });
      return cookieOf(set_cookies);
    }

    test('by a reset: a sign-in does not wait for its second factor', async () => {
      const { passwords, hold, open } = heldPasswords();
      await using made = await openTestSignIn({ passwords });
      const { sign_in } = made;
      await addUser(made);
      await turnOnSecondFactor(sign_in, await signedIn(sign_in));
      const { result } = await hold(() => sign_in.signIn(visit(), GIVEN));
      await resetByMail(made);
      open();
      expect(await result).toEqual(refusedAs('wrong_credentials'));
    });

    /** The accounts of sign-in, where the acts on a second factor go into the audit log. */
    const auditedAccounts = ({ parts, context }: TestSignIn): TestSignIn['parts']['accounts'] => ({
      ...parts.accounts,
      noteSecondFactor: (user_id, action) => noteSecondFactor(context, { kind: 'user', user_id }, action),
    });
    const actionsOf = async ({ execute }: TestSignIn) =>
      (await execute('SELECT action FROM trail_entries')).map(({ action }) => action);

    test('by a reset: turning the second factor off leaves no session, and is in the audit log', async () => {
      const { passwords, hold, open } = heldPasswords();
      await using made = await openTestSignIn({ passwords });
      const sign_in = made.reopen({ accounts: auditedAccounts(made) });
      await addUser(made);
      const cookies = await turnOnSecondFactor(sign_in, await signedIn(sign_in));
      const { result } = await hold(() =>
        sign_in.second_factors.remove(visit(cookies), { password: PASSWORD }),
      );
      await resetByMail(made);
      open();
      expect(await result).toEqual(refusedAs('not_signed_in'));
      expect(await numberOf(made, 'sessions')).toBe(0);
      expect(await actionsOf(made)).toContain('second_factor.remove');
    });

    test('by a reset: turning the second factor on leaves no session, and is in the audit log', async () => {
      await using made = await openTestSignIn();
      await addUser(made);
      const cookies = await signedIn(made.sign_in);
      const { app_url } = await made.sign_in.second_factors.begin(visit(cookies), { password: PASSWORD });
      let is_reset = false;
      const sign_in = made.reopen({
        accounts: auditedAccounts(made),
        database: (options) => {
          const adapter = made.parts.database(options);
          return {
            ...adapter,
            async findOne<Row>(given: Parameters<typeof adapter.findOne>[0]) {
              const found = await adapter.findOne<Row>(given);
              // The session was found valid before.
              if (given.model === 'twoFactor' && !is_reset) {
                is_reset = true;
                await resetByMail(made);
              }
              return found;
            },
          };
        },
      });
      const confirmed = sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) });
      await expect(confirmed).rejects.toEqual(refusedAs('not_signed_in'));
      expect(is_reset).toBe(true);
      expect(await numberOf(made, 'sessions')).toBe(0);
      expect(await actionsOf(made)).toContain('second_factor.add');
    });

    test('by a reset: a session that begins after the others have ended, and before the new one is written, ends', async () => {
      await using made = await openTestSignIn();
      await addUser(made);
      const begun: string[] = [];
      const beginOne = async () => {
        if (begun.length === 0) begun.push(await signedIn(made.sign_in));
      };
      const watched = <Adapter extends DBTransactionAdapter>(adapter: Adapter): Adapter => ({
        ...adapter,
        async deleteMany(given) {
          const deleted = await adapter.deleteMany(given);
          if (given.model === 'session') await beginOne();
          return deleted;
        },
      });
      const sign_in = made.reopen({
        database: (options) => {
          const adapter = made.parts.database(options);
          return {
            ...watched(adapter),
            transaction: (work) => adapter.transaction((inside) => work(watched(inside))),
          };
        },
      });
      await resetByMail({ ...made, sign_in });
      expect(begun).toHaveLength(1);
      expect(await numberOf(made, 'sessions')).toBe(0);
    });
  });

  test('of a user whom the operator made is none, until a link sets one', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { user } = await signUp(made.context, { name: 'Ada Lovelace', email: EMAIL });
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('wrong_credentials'));
    const link = new URL(await resetLink(made.parts, user.id));
    expect(`${link.origin}${link.pathname}`).toBe('https://tds.example.com/console/reset');
    const token = new URLSearchParams(link.hash.slice(1)).get('token') ?? '';
    await sign_in.reset(visit(), { token, new_password: PASSWORD });
    expect((await sessionOf(sign_in, await signedIn(sign_in))).user_id).toBe(user.id);
    expect(await numberOf(made, 'organizations')).toBe(1);
  });

  test('is set by no earlier link once the operator has made one', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await addUser(made);
    const { user_id } = await sessionOf(sign_in, await signedIn(sign_in));
    await sign_in.requestReset(visit(), EMAIL);
    const earlier = tokenIn(await smtp.next(), 'reset');
    await endSignIns(made.context, OPERATOR, user_id);
    const link = new URL(await resetLink(made.parts, user_id));
    await expect(sign_in.reset(visit(), { token: earlier, new_password: PASSWORD })).rejects.toEqual(
      refusedAs('link_ended'),
    );
    const token = new URLSearchParams(link.hash.slice(1)).get('token') ?? '';
    await sign_in.reset(visit(), { token, new_password: NEW_PASSWORD });
    await signedIn(sign_in, EMAIL, NEW_PASSWORD);
  });
});

describe('deleting the account', () => {
  test('needs the password, and ends the session with the rule', async () => {
    const deleted: string[] = [];
    await using made = await openTestSignIn();
    await addUser(made);
    const sign_in = made.reopen({
      accounts: {
        ensurePersonalOrganization: () => Promise.resolve(),
        deleteAccount: (user_id) => {
          deleted.push(user_id);
          return Promise.resolve();
        },
        invitedAddress: () => Promise.resolve(null),
        noteSecondFactor: () => Promise.resolve(),
        notePasskey: () => Promise.resolve(),
      },
    });
    const cookies = await signedIn(sign_in);
    const session = await sessionOf(sign_in, cookies);
    await expect(sign_in.deleteAccount(visit(cookies), { password: 'wrong password' })).rejects.toEqual(
      refusedAs('wrong_password'),
    );
    await expect(sign_in.deleteAccount(visit(), { password: PASSWORD })).rejects.toEqual(
      refusedAs('not_signed_in'),
    );
    expect(deleted).toEqual([]);
    const { set_cookies } = await sign_in.deleteAccount(visit(cookies), { password: PASSWORD });
    expect([deleted, cookieOf(set_cookies)]).toEqual([[session.user_id], '']);
    expect(await sign_in.sessionOf(new Headers({ cookie: cookies }))).toBeNull();
  });

  test('that the rule refuses leaves everything as it is', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const sign_in = made.reopen({
      accounts: {
        ensurePersonalOrganization: () => Promise.resolve(),
        deleteAccount: () => Promise.reject(new AccountError('last_owner')),
        invitedAddress: () => Promise.resolve(null),
        noteSecondFactor: () => Promise.resolve(),
        notePasskey: () => Promise.resolve(),
      },
    });
    const cookies = await signedIn(sign_in);
    await expect(sign_in.deleteAccount(visit(cookies), { password: PASSWORD })).rejects.toEqual(
      refusedAs('last_owner'),
    );
    await sessionOf(sign_in, cookies);
  });
});

describe('after a crash', () => {
  test('between a user and their organization, the next session and the next sign-in make it, once', async () => {
    await using made = await openTestSignIn();
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    const remove = async () => {
      for (const table of ['projects', 'members', 'organizations'])
        await made.execute(`DELETE FROM ${table}`);
    };
    await remove();
    await sessionOf(made.sign_in, cookies);
    await sessionOf(made.sign_in, cookies);
    expect(await numberOf(made, 'organizations')).toBe(1);
    await remove();
    await signedIn(made.sign_in);
    expect(await numberOf(made, 'organizations')).toBe(1);
  });

  test('between a user and their password, signing up again leads to one', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    await sign_in.signUp(visit(), GIVEN);
    await smtp.next();
    for (const table of ['sign_in_accounts', 'verifications']) await made.execute(`DELETE FROM ${table}`);
    await sign_in.signUp(visit(), GIVEN);
    await sign_in.reset(visit(), { token: tokenIn(await smtp.next(), 'reset'), new_password: PASSWORD });
    await sessionOf(sign_in, await signedIn(sign_in));
    expect(await numberOf(made, 'organizations')).toBe(1);
  });
});

test('neither a session’s token, nor a link’s, nor a password is in the database', async () => {
  // Hashed as the service does.
  await using made = await openTestSignIn({ passwords: undefined });
  const { sign_in, smtp } = made;
  await sign_in.signUp(visit(), GIVEN);
  const verification = tokenIn(await smtp.next(), 'verify');
  await sign_in.requestReset(visit(), EMAIL);
  const reset = tokenIn(await smtp.next(), 'reset');
  await sign_in.verify(visit(), { token: verification, password: PASSWORD });
  const first = await signedIn(sign_in);
  const { set_cookies } = await sign_in.changePassword(visit(first), {
    current_password: PASSWORD,
    new_password: NEW_PASSWORD,
  });
  const second = cookieOf(set_cookies);
  await made.execute('UPDATE sessions SET expires_at_ms = expires_at_ms - 600000');
  await sessionOf(sign_in, second);
  const session_tokens = [first, second].map((cookies) => /=(.+?)\./.exec(cookies)?.[1] ?? '');
  expect(session_tokens.map(({ length }) => length)).toEqual([32, 32]);
  const bytes = await made.bytes();
  expect(bytes.includes(EMAIL)).toBe(true);
  for (const secret of [...session_tokens, verification, reset, PASSWORD, NEW_PASSWORD]) {
    expect(bytes.includes(secret)).toBe(false);
  }
});

describe('which accounts exist is not told', () => {
  /** Counts the work that takes time. */
  function countingPasswords() {
    const counted = { hashed: 0, verified: 0 };
    return {
      counted,
      passwords: {
        hash: (password: string) => {
          counted.hashed += 1;
          return CHEAP_PASSWORDS.hash(password);
        },
        verify: (given: { readonly hash: string; readonly password: string }) => {
          counted.verified += 1;
          return CHEAP_PASSWORDS.verify(given);
        },
      },
    };
  }

  test('by a sign-in: a wrong password, no password and no account are the same refusal after one hash', async () => {
    const { counted, passwords } = countingPasswords();
    await using made = await openTestSignIn({ passwords });
    await addUser(made);
    await signUp(made.context, { name: 'No Password', email: 'none@example.com' });
    const answers: unknown[] = [];
    for (const email of [EMAIL, 'none@example.com', 'nobody@example.com']) {
      counted.hashed = 0;
      counted.verified = 0;
      const error = await made.sign_in
        .signIn(visit(), { email, password: 'wrong password' })
        .catch((failure: unknown) => failure);
      answers.push([JSON.stringify(error), String(error), counted.hashed + counted.verified]);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject([expect.stringContaining('wrong_credentials'), expect.any(String), 1]);
  });

  test.each(['signUp', 'requestReset', 'requestVerification'] as const)(
    'by %s: it is answered before the database is asked',
    async (what) => {
      let statements = 0;
      await using made = await openTestSignIn({
        onStatement: () => {
          statements += 1;
        },
      });
      await addUser(made);
      for (const email of [EMAIL, 'nobody@example.com']) {
        const before = statements;
        const answer =
          what === 'signUp'
            ? made.sign_in.signUp(visit(), { ...GIVEN, email })
            : made.sign_in[what](visit(), email);
        expect(await answer.then((value) => [value, statements - before])).toEqual([undefined, 0]);
        await made.sign_in.close();
        expect(statements).toBeGreaterThan(before);
      }
    },
  );

  test('by mails: an address without an account gets none for a reset or a verification', async () => {
    await using made = await openTestSignIn();
    await made.sign_in.requestReset(visit(), 'nobody@example.com');
    await made.sign_in.requestVerification(visit(), 'nobody@example.com');
    await made.sign_in.close();
    expect([made.smtp.received, made.problems]).toEqual([[], []]);
    const tokens = await made.execute('SELECT value FROM verifications');
    expect(new Set(tokens.map(({ value }) => value))).toEqual(new Set(['user_none']));
    await addUser(made);
    await signedIn(made.sign_in);
    expect(await numberOf(made, 'verifications')).toBe(0);
  });

  test.each(['requestReset', 'requestVerification'] as const)(
    'by %s: the database has the same work for an address with an account and without one',
    async (what) => {
      let statements = 0;
      await using made = await openTestSignIn({
        onStatement: () => {
          statements += 1;
        },
      });
      await addUser(made);
      await made.sign_in.signUp(visit(), { ...GIVEN, email: 'unverified@example.com' });
      await made.sign_in.close();
      const sign_in = made.reopen({ mailer: printingMailer(() => undefined) });
      const counts = [];
      for (const email of [EMAIL, 'unverified@example.com', 'nobody@example.com', EMAIL]) {
        const before = statements;
        await sign_in[what](visit(), email);
        await sign_in.close();
        counts.push(statements - before);
      }
      expect(new Set(counts).size).toBe(1);
      expect(counts[0]).toBeGreaterThan(1);
    },
  );
});

test('five sign-ups of one address at once make one account, mail it each time, and are no failure', async () => {
  await using made = await openTestSignIn();
  await Promise.all(Array.from({ length: 5 }, () => made.sign_in.signUp(visit(), GIVEN)));
  await made.sign_in.close();
  expect([made.problems, await numberOf(made, 'users')]).toEqual([[], 1]);
  const subjects = made.smtp.received.map(({ headers }) => headers.get('subject')).sort();
  expect(subjects).toEqual([
    'Verify your email address',
    ...Array<string>(4).fill('You already have an account'),
  ]);
});

describe('passwords that are checked', () => {
  /** Passwords that are hashed when the test says so, in the order in which that was begun. */
  function heldPasswords() {
    const begun: string[] = [];
    const running: (() => void)[] = [];
    const work = (password: string) =>
      new Promise<void>((end) => {
        begun.push(password);
        running.push(end);
      });
    return {
      begun,
      async endOne() {
        running.shift()?.();
        // Both of its queries, and what follows.
        for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
      },
      passwords: {
        hash: (password: string) => work(password).then(() => '00:00'),
        verify: ({ password }: { readonly password: string }) => work(password).then(() => true),
      },
    };
  }

  test('are hashed for an owner after one of each address at the first sign-in, and next at others, however many guess', async () => {
    const { begun, endOne, passwords } = heldPasswords();
    await using made = await openTestSignIn();
    await addUser(made);
    const sign_in = made.reopen({ passwords });
    const signIn = (email: string, password: string, address: string) =>
      sign_in.signIn(visit('', address), { email, password }).catch(() => null);
    const addresses = Array.from({ length: 20 }, freshAddress);
    const guesses = addresses.flatMap((address) =>
      Array.from({ length: 6 }, (_, index) =>
        signIn(`${address}-${index}@example.com`, 'guessed password', address),
      ),
    );
    await endOne();
    const owner_address = freshAddress();
    // The owner waits for their account to be read, and for the hashes that run.
    for (const most of [addresses.length + 3, 4, 4, 4]) {
      const before = begun.length;
      const signed_in = signIn(EMAIL, PASSWORD, owner_address);
      while (!begun.slice(before).includes(PASSWORD) && begun.length < before + most) await endOne();
      expect(begun.slice(before)).toContain(PASSWORD);
      for (let running = 0; running < 3; running += 1) await endOne();
      await signed_in;
    }
    while (begun.length < 124) await endOne();
    for (let running = 0; running < 3; running += 1) await endOne();
    await Promise.all(guesses);
  });

  test('are hashed for an address whose last one was right before those of sign-ups; a wrong one ends that', async () => {
    const { begun, endOne, passwords } = heldPasswords();
    await using made = await openTestSignIn();
    await addUser(made);
    const sign_in = made.reopen({ passwords });
    const address = freshAddress();
    const signIn = (email: string) =>
      sign_in.signIn(visit('', address), { email, password: PASSWORD }).catch(() => null);
    /** Returns how many were begun up to the owner's. */
    const wait = async (email: string) => {
      const before = begun.length;
      const signed_in = signIn(email);
      while (!begun.slice(before).includes(PASSWORD)) await endOne();
      const count = begun.length - before;
      for (let running = 0; running < 3; running += 1) await endOne();
      await signed_in;
      return count;
    };
    await wait(EMAIL);
    for (let index = 0; index < 40; index += 1) {
      const given = { name: 'Somebody', email: `new-${index}@example.com`, password: 'a password of theirs' };
      await sign_in.signUp(visit('', freshAddress()), given);
    }
    await endOne();
    expect(await wait(EMAIL)).toBeLessThan(5);
    expect(await wait('nobody@example.com')).toBeLessThan(5);
    expect(await wait(EMAIL)).toBeGreaterThan(20);
    while (begun.length < 44) await endOne();
    for (let running = 0; running < 3; running += 1) await endOne();
    await sign_in.close();
  });

  test('are ten of an address, waiting or not; more are refused at once', async () => {
    const { begun, endOne, passwords } = heldPasswords();
    await using made = await openTestSignIn({ passwords });
    const address = freshAddress();
    const signIn = (index: number) =>
      made.sign_in
        .signIn(visit('', address), { email: `user-${index}@example.com`, password: 'guessed password' })
        .catch((error: unknown) => error);
    const ten = Array.from({ length: 10 }, (_, index) => signIn(index));
    expect(await signIn(11)).toEqual(refusedAs('too_busy'));
    while (begun.length < 10) await endOne();
    await endOne();
    for (const refused of await Promise.all(ten)) expect(refused).toEqual(refusedAs('wrong_credentials'));
  });
});

describe('limits', () => {
  async function untilRefused(attempt: () => Promise<unknown>): Promise<[attempts: number, error: unknown]> {
    for (let attempts = 0; ; attempts += 1) {
      try {
        await attempt();
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'too_many_attempts') {
          return [attempts, error];
        }
      }
    }
  }

  test('of guesses at an account’s password, from any address; time brings them back, success takes none', async () => {
    const clock = new TestClock(Date.now());
    await using made = await openTestSignIn({ clock });
    const { sign_in } = made;
    await addUser(made);
    for (let times = 0; times < 12; times += 1) await signedIn(sign_in);
    const guess = () => sign_in.signIn(visit(), { email: EMAIL, password: 'wrong password' });
    const [attempts, error] = await untilRefused(guess);
    expect([attempts, error]).toEqual([10, expect.objectContaining({ retry_after_s: 60 })]);
    await expect(sign_in.signIn(visit(), GIVEN)).rejects.toEqual(refusedAs('too_many_attempts'));
    clock.advance(60_000);
    await signedIn(sign_in);
  });

  test('are the same for an account that does not exist', async () => {
    await using made = await openTestSignIn({ clock: new TestClock(Date.now()) });
    const [attempts] = await untilRefused(() =>
      made.sign_in.signIn(visit(), { email: 'nobody@example.com', password: 'wrong password' }),
    );
    expect(attempts).toBe(10);
  });

  test('of guesses count no failure of our own, however often the right password is tried', async () => {
    await using made = await openTestSignIn({ clock: new TestClock(Date.now()) });
    const { sign_in, smtp } = made;
    await addUser(made);
    const cookies = await signedIn(sign_in);
    await sign_in.signUp(visit(), { ...GIVEN, email: 'new@example.com' });
    const token = tokenIn(await smtp.next(), 'verify');
    const change = { current_password: PASSWORD, new_password: NEW_PASSWORD };
    const tries: readonly (() => Promise<unknown>)[] = [
      () => sign_in.verify(visit(), { token, password: PASSWORD }),
      () => sign_in.signIn(visit(), GIVEN),
      () => sign_in.second_factors.begin(visit(cookies), { password: PASSWORD }),
      () => sign_in.changePassword(visit(cookies), change),
    ];
    await made.execute('ALTER TABLE sign_in_accounts RENAME TO hidden');
    for (const attempt of tries) {
      for (let times = 0; times < 11; times += 1) {
        const error = await attempt().catch((failure: unknown) => failure);
        expect([error instanceof Error, error instanceof SignInError]).toEqual([true, false]);
      }
    }
    await made.execute('ALTER TABLE hidden RENAME TO sign_in_accounts');
    for (const attempt of tries) await attempt();
  });

  test('of guesses count no refusal for lack of room', async () => {
    await using made = await openTestSignIn({ clock: new TestClock(Date.now()) });
    await addUser(made);
    const gate = Promise.withResolvers<void>();
    const sign_in = made.reopen({
      passwords: {
        hash: (password) => gate.promise.then(() => CHEAP_PASSWORDS.hash(password)),
        verify: (given) => gate.promise.then(() => CHEAP_PASSWORDS.verify(given)),
      },
    });
    const address = freshAddress();
    const others = Array.from({ length: 10 }, (_, index) =>
      sign_in.signIn(visit('', address), { ...GIVEN, email: `user-${index}@example.com` }).catch(() => null),
    );
    for (let times = 0; times < 11; times += 1) {
      await expect(sign_in.signIn(visit('', address), GIVEN)).rejects.toEqual(refusedAs('too_busy'));
    }
    gate.resolve();
    await Promise.all(others);
    await signedIn(sign_in);
    await sign_in.close();
  });

  test.each([
    ['sign-ins', 30],
    ['sign-ups', 10],
    ['mails', 10],
    ['links', 20],
  ] as const)('of %s of an address, whatever account they name', async (what, most) => {
    const clock = new TestClock(Date.now());
    await using made = await openTestSignIn({
      clock,
      passwords: {
        hash: () => Promise.resolve('00:00'),
        verify: () => Promise.resolve(false),
      },
    });
    const address = freshAddress();
    let number = 0;
    const attempt = () => {
      number += 1;
      const email = `user-${number}@example.com`;
      switch (what) {
        case 'sign-ins':
          return made.sign_in.signIn(visit('', address), { email, password: PASSWORD });
        case 'sign-ups':
          return made.sign_in.signUp(visit('', address), { ...GIVEN, email });
        case 'mails':
          return number % 2 === 0
            ? made.sign_in.requestReset(visit('', address), email)
            : made.sign_in.requestVerification(visit('', address), email);
        case 'links':
          return number % 2 === 0
            ? made.sign_in.verify(visit('', address), { token: 'none', password: PASSWORD })
            : made.sign_in.reset(visit('', address), { token: 'none', new_password: PASSWORD });
      }
    };
    const [attempts] = await untilRefused(attempt);
    expect(attempts).toBe(most);
    const other = visit('', freshAddress());
    await made.sign_in.requestReset(other, 'else@example.com');
  });

  test('of mails to one mailbox, whoever asks for them: five of each purpose, whatever was used up of the others', async () => {
    const clock = new TestClock(Date.now());
    await using made = await openTestSignIn({ clock });
    const { sign_in } = made;
    const asked = [
      () => sign_in.requestVerification(visit(), EMAIL),
      () => sign_in.requestReset(visit(), EMAIL),
      () => sign_in.signUp(visit(), GIVEN),
      () => Promise.try(() => sign_in.countInvitation({ user_id: freshAddress() }, EMAIL)),
    ];
    const attempts: number[] = [];
    for (const ask of asked) attempts.push((await untilRefused(ask))[0]);
    expect(attempts).toEqual([5, 5, 5, 5]);
  });

  test.each([
    ['resets', EMAIL],
    ['sign-ups', 'new@example.com'],
  ] as const)(
    'of mails leave the owner of a mailbox a link that works, when a stranger uses up its %s',
    async (what, email) => {
      const clock = new TestClock(Date.now());
      await using made = await openTestSignIn({ clock });
      const { sign_in, smtp } = made;
      await addUser(made);
      await untilRefused(() => sign_in.requestVerification(visit(), email));
      await untilRefused(() =>
        what === 'resets'
          ? sign_in.requestReset(visit(), email)
          : sign_in.signUp(visit(), { ...GIVEN, email, password: 'what Eve would like' }),
      );
      await sign_in.close();
      const newest = smtp.received.findLast(({ text }) => text.includes('/console/reset#'));
      if (newest === undefined) throw new Error('no mail has a link that sets a password');
      expect(newest.to).toEqual([email]);
      const after = made.reopen();
      await after.reset(visit(), { token: tokenIn(newest, 'reset'), new_password: NEW_PASSWORD });
      await signedIn(after, email, NEW_PASSWORD);
      await after.close();
    },
  );

  test('of mails to one mailbox count no request that is refused for lack of room', async () => {
    const clock = new TestClock(Date.now());
    await using made = await openTestSignIn({ clock });
    const sign_in = made.reopen({ mailer: printingMailer(() => undefined) });
    // Of another purpose: 200 names of one purpose share a slot with this mailbox once in 80 runs.
    const others = Array.from({ length: 200 }, (_, index) =>
      sign_in.requestVerification(visit(), `user-${index}@example.com`),
    );
    for (let times = 0; times < 5; times += 1) {
      await expect(sign_in.requestReset(visit(), EMAIL)).rejects.toEqual(refusedAs('too_busy'));
    }
    await Promise.all(others);
    await sign_in.close();
    const [attempts] = await untilRefused(() => sign_in.requestReset(visit(), EMAIL));
    expect(attempts).toBe(5);
    await sign_in.close();
  });
});

test('a mail server that takes no mail is a problem, and no refusal', async () => {
  await using made = await openTestSignIn({ smtp_url: 'smtp://127.0.0.1:1' });
  await made.sign_in.signUp(visit(), GIVEN);
  await made.sign_in.close();
  expect(made.problems).toEqual([
    { request_id: null, step: 'mail', code: null, error: expect.objectContaining({ name: 'MailNotSent' }) },
  ]);
  expect(await numberOf(made, 'users')).toBe(1);
});

test('a database that fails after the answer is a problem', async () => {
  await using made = await openTestSignIn();
  await made.execute('ALTER TABLE users RENAME TO hidden');
  await made.sign_in.requestReset(visit(), EMAIL);
  await made.sign_in.close();
  await made.execute('ALTER TABLE hidden RENAME TO users');
  expect(made.problems.map(({ step }) => step)).toEqual(['sign_in']);
});
