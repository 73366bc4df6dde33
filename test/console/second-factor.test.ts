import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { SignInError } from '../../src/console/people/sign-in-error.ts';
import { appCode, wrongCode } from '../support/totp.ts';
import {
  addUser,
  cookieOf,
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
const GIVEN = { email: EMAIL, password: PASSWORD };
const NEW_PASSWORD = 'another battery staple';

const refusedAs = (code: string) => expect.objectContaining({ code });

/** A user, Ada by default, who has turned the second factor on. */
async function withSecondFactor(made: TestSignIn, email = EMAIL) {
  const { sign_in } = made;
  await addUser(made, email);
  const before = await signedIn(sign_in, email);
  const begun = await sign_in.second_factors.begin(visit(before), { password: PASSWORD });
  const { set_cookies } = await sign_in.second_factors.confirm(visit(before), {
    code: appCode(begun.app_url),
  });
  return { ...begun, before, cookies: cookieOf(set_cookies) };
}

/** The cookies of a sign-in whose password was right, and which waits for its second factor. */
async function waiting({ sign_in }: TestSignIn, email = EMAIL): Promise<string> {
  const step = await sign_in.signIn(visit(), { ...GIVEN, email });
  expect(step.needs_second_factor).toBe(true);
  return cookieOf(step.set_cookies);
}

const isSignedIn = async ({ sign_in }: TestSignIn, cookie: string) =>
  (await sign_in.sessionOf(new Headers({ cookie }))) !== null;

describe('a second factor', () => {
  test('is asked for only once a first code was right, and sign-in stays as it is without one', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    await addUser(made);
    const cookies = await signedIn(sign_in);
    const { app_url, recovery_codes } = await sign_in.second_factors.begin(visit(cookies), {
      password: PASSWORD,
    });
    expect([recovery_codes.length, new Set(recovery_codes).size]).toEqual([10, 10]);
    await expect(
      sign_in.second_factors.confirm(visit(cookies), { code: wrongCode(app_url) }),
    ).rejects.toEqual(refusedAs('wrong_code'));
    expect((await sign_in.signIn(visit(), GIVEN)).needs_second_factor).toBe(false);
    expect(await sign_in.second_factors.statusOf(await sessionOf(sign_in, cookies))).toEqual({
      is_on: false,
      recovery_codes_left: 0,
    });
    const confirmed = await sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) });
    const session = await sessionOf(sign_in, cookieOf(confirmed.set_cookies));
    expect(await sign_in.second_factors.statusOf(session)).toEqual({ is_on: true, recovery_codes_left: 10 });
    expect(made.problems).toEqual([]);
  });

  test('makes a session of the right password and the right code alone', async () => {
    await using made = await openTestSignIn();
    const { app_url } = await withSecondFactor(made);
    const { sign_in } = made;
    await expect(sign_in.signIn(visit(), { ...GIVEN, password: 'wrong password' })).rejects.toEqual(
      refusedAs('wrong_credentials'),
    );
    const cookies = await waiting(made);
    expect(await isSignedIn(made, cookies)).toBe(false);
    await expect(sign_in.finishSignIn(visit(cookies), { code: wrongCode(app_url) })).rejects.toEqual(
      refusedAs('wrong_code'),
    );
    await expect(sign_in.finishSignIn(visit(), { code: appCode(app_url) })).rejects.toEqual(
      refusedAs('second_factor_ended'),
    );
    const { set_cookies } = await sign_in.finishSignIn(visit(cookies), { code: ` ${appCode(app_url)} ` });
    expect((await sessionOf(sign_in, cookieOf(set_cookies))).email).toBe(EMAIL);
    // The waiting sign-in is used up.
    await expect(sign_in.finishSignIn(visit(cookies), { code: appCode(app_url) })).rejects.toEqual(
      refusedAs('second_factor_ended'),
    );
    expect(made.problems).toEqual([]);
  });

  test('is that of the waiting sign-in, also in a browser where another account is signed in', async () => {
    await using made = await openTestSignIn();
    const { app_url } = await withSecondFactor(made);
    await addUser(made, 'eve@example.com');
    const eve = await signedIn(made.sign_in, 'eve@example.com');
    const both = visit(`${eve}; ${await waiting(made)}`);
    const { set_cookies } = await made.sign_in.finishSignIn(both, { code: appCode(app_url) });
    expect((await sessionOf(made.sign_in, cookieOf(set_cookies))).email).toBe(EMAIL);
  });

  test('is that of one account, where a request has the cookies of two waiting sign-ins', async () => {
    await using made = await openTestSignIn();
    const noted: string[][] = [];
    const sign_in = made.reopen({
      accounts: {
        ...made.parts.accounts,
        noteSecondFactor: (...entry) => Promise.resolve(void noted.push(entry)),
      },
    });
    const eve = { email: 'eve@example.com', ...(await withSecondFactor(made, 'eve@example.com')) };
    const { app_url, recovery_codes } = await withSecondFactor(made);
    const code = appCode(app_url);
    await sign_in.finishSignIn(visit(await waiting(made)), { code });
    const cookies = [await waiting(made), await waiting(made, eve.email)];
    for (const both of [cookies, cookies.toReversed()]) {
      // Otherwise the used code would be looked for among those of Eve, and so would the guesses.
      await expect(sign_in.finishSignIn(visit(both.join('; ')), { code })).rejects.toEqual(
        refusedAs('wrong_code'),
      );
    }
    // The last one counts, here that of Ada.
    const [recovery_code = ''] = recovery_codes;
    const both = visit(cookies.toReversed().join('; '));
    const { set_cookies } = await sign_in.finishSignIn(both, { code: recovery_code });
    const { email, user_id } = await sessionOf(sign_in, cookieOf(set_cookies));
    expect(email).toBe(EMAIL);
    expect(noted).toEqual([[user_id, 'second_factor.recover']]);
  });

  test('begins one session with each code, also where two sign-ins send it at once', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { app_url } = await withSecondFactor(made);
    const now_ms = Date.now();
    const both = [visit(await waiting(made)), visit(await waiting(made))];
    const code = appCode(app_url, now_ms);
    const ends = await Promise.allSettled(both.map((each) => sign_in.finishSignIn(each, { code })));
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(made.problems).toEqual([]);
    const later = visit(await waiting(made));
    await expect(sign_in.finishSignIn(later, { code })).rejects.toEqual(refusedAs('wrong_code'));
    const next = appCode(app_url, now_ms + 30_000);
    const { set_cookies } = await sign_in.finishSignIn(later, { code: next });
    expect((await sessionOf(sign_in, cookieOf(set_cookies))).email).toBe(EMAIL);
  });

  test('begins one session with a recovery code that two sign-ins send at once; the other begins again', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { recovery_codes } = await withSecondFactor(made);
    const [code = ''] = recovery_codes;
    const both = [visit(await waiting(made)), visit(await waiting(made))];
    const ends = await Promise.allSettled(both.map((each) => sign_in.finishSignIn(each, { code })));
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: refusedAs('second_factor_ended'),
    });
    expect(made.problems).toEqual([]);
  });

  test('can be replaced by each recovery code once, until there are new ones', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { recovery_codes, cookies } = await withSecondFactor(made);
    const [first = '', second = ''] = recovery_codes;
    await sign_in.finishSignIn(visit(await waiting(made)), { code: first });
    await expect(sign_in.finishSignIn(visit(await waiting(made)), { code: first })).rejects.toEqual(
      refusedAs('wrong_code'),
    );
    const session = await sessionOf(sign_in, cookies);
    expect((await sign_in.second_factors.statusOf(session)).recovery_codes_left).toBe(9);
    await expect(
      sign_in.second_factors.renewRecoveryCodes(visit(cookies), { password: 'wrong password' }),
    ).rejects.toEqual(refusedAs('wrong_password'));
    const [renewed = ''] = await sign_in.second_factors.renewRecoveryCodes(visit(cookies), {
      password: PASSWORD,
    });
    await expect(sign_in.finishSignIn(visit(await waiting(made)), { code: second })).rejects.toEqual(
      refusedAs('wrong_code'),
    );
    await sign_in.finishSignIn(visit(await waiting(made)), { code: renewed });
  });

  test('is turned off by the password, after which the password alone signs in', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { cookies } = await withSecondFactor(made);
    await expect(
      sign_in.second_factors.remove(visit(cookies), { password: 'wrong password' }),
    ).rejects.toEqual(refusedAs('wrong_password'));
    await expect(sign_in.second_factors.begin(visit(cookies), { password: PASSWORD })).rejects.toEqual(
      refusedAs('second_factor_exists'),
    );
    const { set_cookies } = await sign_in.second_factors.remove(visit(cookies), { password: PASSWORD });
    expect(await isSignedIn(made, cookieOf(set_cookies))).toBe(true);
    await signedIn(sign_in);
  });

  test('stays through a new password, which ends sign-ins that wait for it', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    const { app_url, cookies } = await withSecondFactor(made);
    const stale = await waiting(made);
    const given = { current_password: PASSWORD, new_password: NEW_PASSWORD };
    const changed = await sign_in.changePassword(visit(cookies), given);
    expect(await isSignedIn(made, cookieOf(changed.set_cookies))).toBe(true);
    expect(await isSignedIn(made, cookies)).toBe(false);
    await expect(sign_in.finishSignIn(visit(stale), { code: appCode(app_url) })).rejects.toEqual(
      refusedAs('second_factor_ended'),
    );
    await sign_in.requestReset(visit(), EMAIL);
    await sign_in.reset(visit(), { token: tokenIn(await smtp.next(), 'reset'), new_password: PASSWORD });
    const { set_cookies } = await sign_in.finishSignIn(visit(await waiting(made)), {
      code: appCode(app_url),
    });
    expect(await isSignedIn(made, cookieOf(set_cookies))).toBe(true);
  });

  test('takes ten guesses of an account, from any address and in any number of sign-ins, then none', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { app_url } = await withSecondFactor(made);
    const told: string[] = [];
    for (let guesses = 0; guesses < 12; guesses += 1) {
      const refusal: unknown = await sign_in
        .finishSignIn(visit(await waiting(made)), { code: wrongCode(app_url) })
        .catch((error: unknown) => error);
      told.push(refusal instanceof Object && 'code' in refusal ? String(refusal.code) : 'signed in');
    }
    expect(told).toEqual([...Array(10).fill('wrong_code'), 'too_many_attempts', 'too_many_attempts']);
    // A restart forgets what is kept in memory, and not the lock.
    await expect(
      made.reopen().finishSignIn(visit(await waiting(made)), { code: appCode(app_url) }),
    ).rejects.toEqual(refusedAs('too_many_attempts'));
  });

  test('counts no failure of our own as a guess, and ten wrong codes of a session that turns it on', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { app_url } = await withSecondFactor(made);
    await addUser(made, 'eve@example.com');
    const eves = await signedIn(sign_in, 'eve@example.com');
    const begun = await sign_in.second_factors.begin(visit(eves), { password: PASSWORD });
    const cookies = await waiting(made);
    const finish = () => sign_in.finishSignIn(visit(cookies), { code: appCode(app_url) });
    const confirm = (code: string) => sign_in.second_factors.confirm(visit(eves), { code });
    await made.execute('ALTER TABLE second_factors RENAME TO hidden');
    for (const attempt of [finish, () => confirm(appCode(begun.app_url))]) {
      for (let times = 0; times < 11; times += 1) {
        const error = await attempt().catch((failure: unknown) => failure);
        expect([error instanceof Error, error instanceof SignInError]).toEqual([true, false]);
      }
    }
    await made.execute('ALTER TABLE hidden RENAME TO second_factors');
    await finish();
    for (let guesses = 0; guesses < 10; guesses += 1) {
      await expect(confirm(wrongCode(begun.app_url))).rejects.toEqual(refusedAs('wrong_code'));
    }
    await expect(confirm(appCode(begun.app_url))).rejects.toEqual(refusedAs('too_many_attempts'));
  });

  test('takes five guesses of one sign-in', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { app_url } = await withSecondFactor(made);
    const cookies = await waiting(made);
    for (let guesses = 0; guesses < 5; guesses += 1) {
      await expect(sign_in.finishSignIn(visit(cookies), { code: wrongCode(app_url) })).rejects.toEqual(
        refusedAs('wrong_code'),
      );
    }
    await expect(sign_in.finishSignIn(visit(cookies), { code: appCode(app_url) })).rejects.toEqual(
      refusedAs('second_factor_ended'),
    );
  });

  test('is noted, each act once', async () => {
    const acts: string[] = [];
    await using made = await openTestSignIn();
    const accounts = {
      ...made.parts.accounts,
      noteSecondFactor: (_: string, action: string) => Promise.resolve(void acts.push(action)),
    };
    const sign_in = made.reopen({ accounts });
    const noting = { ...made, sign_in };
    const { app_url, cookies, recovery_codes } = await withSecondFactor(noting);
    const [first = ''] = recovery_codes;
    await sign_in.finishSignIn(visit(await waiting(noting)), { code: first });
    await sign_in.second_factors.renewRecoveryCodes(visit(cookies), { password: PASSWORD });
    // A code turns nothing on while the factor is on. It would only tell whoever has the session that it is right.
    await expect(sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) })).rejects.toEqual(
      refusedAs('second_factor_exists'),
    );
    await sign_in.second_factors.remove(visit(cookies), { password: PASSWORD });
    expect(acts).toEqual([
      'second_factor.add',
      'second_factor.recover',
      'second_factor.recovery_codes',
      'second_factor.remove',
    ]);
  });

  test('leaves neither its secret nor a code in the database', async () => {
    await using made = await openTestSignIn();
    const { app_url, recovery_codes } = await withSecondFactor(made);
    await waiting(made);
    const secret = new URL(app_url).searchParams.get('secret') ?? '';
    expect(secret.length).toBeGreaterThan(30);
    const bytes = await made.bytes();
    for (const text of [secret, ...recovery_codes]) expect(bytes.includes(text)).toBe(false);
    const [row] = await made.execute('SELECT secret_encrypted FROM second_factors');
    expect(String(row?.secret_encrypted).length).toBeGreaterThan(30);
  });
});
