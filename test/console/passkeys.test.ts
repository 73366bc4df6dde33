import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { AsyncLocalStorage } from 'node:async_hooks';
import { OPERATOR } from '../../src/access/actor.ts';
import { endSignIns } from '../../src/accounts/end-sign-ins.ts';
import { RelyingParties, relyingPartyAt } from '../../src/console/people/relying-party.ts';
import type { Visit } from '../../src/console/people/sign-in.ts';
import { SignInError } from '../../src/console/people/sign-in-error.ts';
import type { Store } from '../../src/store/store.ts';
import { Authenticator } from '../support/authenticator.ts';
import { IS_ON_POSTGRES } from '../support/service.ts';
import { appCode } from '../support/totp.ts';
import {
  addUser,
  cookieOf,
  openTestSignIn,
  PASSWORD,
  PUBLIC_URL,
  sessionOf,
  signedIn,
  type TestSignIn,
  tokenIn,
  visit,
} from './support.ts';

setDefaultTimeout(120_000);

const EMAIL = 'ada@example.com';
const GIVEN = { email: EMAIL, password: PASSWORD };
const refusedAs = (code: string) => expect.objectContaining({ code });

/** A request from the console's own page; the cookies of both are sent. */
function pageOf(...cookies: readonly string[]): Visit {
  const { headers, client_address } = visit(cookies.join('; '));
  headers.set('origin', PUBLIC_URL);
  return { headers, client_address };
}

/** Begins to add a passkey to the user of that session. */
async function begin({ sign_in }: TestSignIn, cookies: string) {
  const authenticator = new Authenticator();
  const { set_cookies, ...request } = await sign_in.passkeys.begin(pageOf(cookies), { password: PASSWORD });
  const created = authenticator.create(request, PUBLIC_URL);
  return { authenticator, created, at: pageOf(cookies, cookieOf(set_cookies)) };
}

/** Adds a passkey to the user of that session. */
async function add(made: TestSignIn, cookies: string, name = 'Laptop') {
  const { authenticator, created, at } = await begin(made, cookies);
  await made.sign_in.passkeys.add(at, { name, ...created });
  return authenticator;
}

/** Ada with a passkey, and the session in which she added it. */
async function withPasskey(made: TestSignIn) {
  await addUser(made);
  const cookies = await signedIn(made.sign_in);
  return { cookies, authenticator: await add(made, cookies) };
}

/** The question of a sign-in and its cookie. */
async function asked({ sign_in }: TestSignIn) {
  const { set_cookies, ...question } = await sign_in.passkeys.ask(pageOf());
  return { question, at: pageOf(cookieOf(set_cookies)) };
}

/** Signs in with a passkey; returns the cookies of the session. */
async function enter(made: TestSignIn, authenticator: Authenticator): Promise<string> {
  const { question, at } = await asked(made);
  const answer = authenticator.answer(question, PUBLIC_URL);
  return cookieOf((await made.sign_in.passkeys.signIn(at, answer)).set_cookies);
}

const isSignedIn = async ({ sign_in }: TestSignIn, cookie: string) =>
  (await sign_in.sessionOf(new Headers({ cookie }))) !== null;

describe('a passkey', () => {
  test('is both steps of sign-in, and its last use is seen', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { authenticator, cookies } = await withPasskey(made);
    const { app_url } = await sign_in.second_factors.begin(visit(cookies), { password: PASSWORD });
    await sign_in.second_factors.confirm(visit(cookies), { code: appCode(app_url) });
    expect((await sign_in.signIn(visit(), GIVEN)).needs_second_factor).toBe(true);
    const session = await sessionOf(sign_in, await enter(made, authenticator));
    expect([session.email, session.client_address]).toEqual([EMAIL, expect.stringMatching(/^10\./)]);
    const [listed, ...others] = await sign_in.passkeys.list(session);
    expect(others).toEqual([]);
    expect(listed).toEqual({
      id: expect.stringMatching(/^passkey_/),
      name: 'Laptop',
      created_at_ms: expect.any(Number),
      last_used_at_ms: expect.any(Number),
    });
    await enter(made, authenticator);
    expect(made.problems).toEqual([]);
  });

  test('is added by the password alone, and only in the session that has begun it', async () => {
    await using made = await openTestSignIn();
    const { passkeys } = made.sign_in;
    await addUser(made);
    await addUser(made, 'eve@example.com');
    const cookies = await signedIn(made.sign_in);
    const eves = await signedIn(made.sign_in, 'eve@example.com');
    await expect(passkeys.begin(pageOf(), { password: PASSWORD })).rejects.toEqual(
      refusedAs('not_signed_in'),
    );
    await expect(passkeys.begin(pageOf(cookies), { password: 'wrong password' })).rejects.toEqual(
      refusedAs('wrong_password'),
    );
    const { set_cookies, ...request } = await passkeys.begin(pageOf(cookies), { password: PASSWORD });
    const made_passkey = { name: '', ...new Authenticator().create(request, PUBLIC_URL) };
    await expect(passkeys.add(pageOf(cookieOf(set_cookies)), made_passkey)).rejects.toEqual(
      refusedAs('not_signed_in'),
    );
    await expect(passkeys.add(pageOf(cookies), made_passkey)).rejects.toEqual(refusedAs('passkey_ended'));
    await expect(passkeys.add(pageOf(eves, cookieOf(set_cookies)), made_passkey)).rejects.toEqual(
      refusedAs('passkey_ended'),
    );
    // Eve's try has used it up.
    await expect(passkeys.add(pageOf(cookies, cookieOf(set_cookies)), made_passkey)).rejects.toEqual(
      refusedAs('passkey_ended'),
    );
    expect(await passkeys.list(await sessionOf(made.sign_in, cookies))).toEqual([]);
    expect(made.problems).toEqual([]);
  });

  test.each([
    ['of a page elsewhere', { origin: 'https://tds.example.com.evil.example' }],
    ['of another domain', { domain: 'evil.example' }],
    ['whose user was not verified', { is_verified: false }],
  ])('%s is neither added nor taken', async (_, misdeeds) => {
    await using made = await openTestSignIn();
    const { passkeys } = made.sign_in;
    const { cookies, authenticator } = await withPasskey(made);
    const { set_cookies, ...request } = await passkeys.begin(pageOf(cookies), { password: PASSWORD });
    const wrong = new Authenticator().create(request, PUBLIC_URL, misdeeds);
    await expect(
      passkeys.add(pageOf(cookies, cookieOf(set_cookies)), { name: '', ...wrong }),
    ).rejects.toEqual(refusedAs('wrong_passkey'));
    const { question, at } = await asked(made);
    await expect(passkeys.signIn(at, authenticator.answer(question, PUBLIC_URL, misdeeds))).rejects.toEqual(
      refusedAs('wrong_passkey'),
    );
    expect(await made.execute('SELECT last_used_at_ms FROM passkeys')).toEqual([{ last_used_at_ms: null }]);
    expect(made.problems).toEqual([]);
  });

  test('answers each question once, its own one, and in time', async () => {
    await using made = await openTestSignIn();
    const { passkeys } = made.sign_in;
    const { cookies, authenticator } = await withPasskey(made);
    const { question, at } = await asked(made);
    const answer = authenticator.answer(question, PUBLIC_URL);
    await passkeys.signIn(at, answer);
    await expect(passkeys.signIn(at, answer)).rejects.toEqual(refusedAs('passkey_ended'));
    const other = await asked(made);
    await expect(passkeys.signIn(other.at, answer)).rejects.toEqual(refusedAs('wrong_passkey'));
    await expect(passkeys.signIn(pageOf(), answer)).rejects.toEqual(refusedAs('passkey_ended'));
    const late = await asked(made);
    await made.execute("UPDATE verifications SET expires_at_ms = 1 WHERE value LIKE '%authentication%'");
    await expect(passkeys.signIn(late.at, authenticator.answer(late.question, PUBLIC_URL))).rejects.toEqual(
      refusedAs('passkey_ended'),
    );
    // A question for a new passkey is none for a sign-in.
    const begun = await passkeys.begin(pageOf(cookies), { password: PASSWORD });
    await expect(
      passkeys.signIn(pageOf(cookieOf(begun.set_cookies)), authenticator.answer(begun, PUBLIC_URL)),
    ).rejects.toEqual(refusedAs('passkey_ended'));
    expect(made.problems).toEqual([]);
  });

  test('is asked for by no cookie of a sign-in that waits for its second factor, which is no failure of ours', async () => {
    await using made = await openTestSignIn();
    const { passkeys, second_factors } = made.sign_in;
    const { cookies, authenticator } = await withPasskey(made);
    const { app_url } = await second_factors.begin(visit(cookies), { password: PASSWORD });
    await second_factors.confirm(visit(cookies), { code: appCode(app_url) });
    const { set_cookies } = await made.sign_in.signIn(visit(), GIVEN);
    const at = pageOf(cookieOf(set_cookies).replaceAll('two_factor', 'passkey'));
    const { question, at: asking } = await asked(made);
    const nameIn = ({ headers }: Visit) => headers.get('cookie')?.split('=')[0];
    expect(nameIn(at)).toBe(nameIn(asking));
    await expect(passkeys.signIn(at, authenticator.answer(question, PUBLIC_URL))).rejects.toEqual(
      refusedAs('passkey_ended'),
    );
    expect(made.problems).toEqual([]);
  });

  test('of a copied authenticator is refused, because its counter stays behind', async () => {
    await using made = await openTestSignIn();
    const { passkeys } = made.sign_in;
    const { authenticator } = await withPasskey(made);
    await enter(made, authenticator);
    await enter(made, authenticator);
    const { question, at } = await asked(made);
    await expect(
      passkeys.signIn(at, authenticator.answer(question, PUBLIC_URL, { signatures: 1 })),
    ).rejects.toEqual(refusedAs('wrong_passkey'));
  });

  test('signs in its own account alone, and an unknown one is refused as a wrong one', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { authenticator } = await withPasskey(made);
    await addUser(made, 'grace@example.com');
    const graces = await add(made, await signedIn(sign_in, 'grace@example.com'));
    expect((await sessionOf(sign_in, await enter(made, graces))).email).toBe('grace@example.com');
    expect((await sessionOf(sign_in, await enter(made, authenticator))).email).toBe(EMAIL);
    for (const [asking, misdeeds] of [
      [new Authenticator(), {}],
      [graces, { id: authenticator.id }],
    ] as const) {
      const { question, at } = await asked(made);
      const answer = asking.answer(question, PUBLIC_URL, misdeeds);
      await expect(sign_in.passkeys.signIn(at, answer)).rejects.toEqual(refusedAs('wrong_passkey'));
    }
    // Its id, taken by somebody else, is refused and no failure of ours.
    const cookies = await signedIn(sign_in, 'grace@example.com');
    const { set_cookies, ...request } = await sign_in.passkeys.begin(pageOf(cookies), { password: PASSWORD });
    const stolen = new Authenticator().create(request, PUBLIC_URL, { id: authenticator.id });
    await expect(
      sign_in.passkeys.add(pageOf(cookies, cookieOf(set_cookies)), { name: '', ...stolen }),
    ).rejects.toEqual(refusedAs('passkey_exists'));
    expect(made.problems).toEqual([]);
  });

  test('that is removed signs nobody in, and the sessions beside the remover’s have ended', async () => {
    await using made = await openTestSignIn();
    const { sign_in } = made;
    const { authenticator, cookies } = await withPasskey(made);
    const begun_by_it = await enter(made, authenticator);
    const [{ id: passkey_id } = { id: '' }] = await sign_in.passkeys.list(await sessionOf(sign_in, cookies));
    await addUser(made, 'eve@example.com');
    const eves = await signedIn(sign_in, 'eve@example.com');
    const given = { passkey_id, password: PASSWORD };
    await expect(sign_in.passkeys.remove(pageOf(eves), given)).rejects.toEqual(refusedAs('not_found'));
    await expect(
      sign_in.passkeys.remove(pageOf(cookies), { ...given, password: 'wrong password' }),
    ).rejects.toEqual(refusedAs('wrong_password'));
    await sign_in.passkeys.remove(pageOf(cookies), given);
    expect([await isSignedIn(made, cookies), await isSignedIn(made, begun_by_it)]).toEqual([true, false]);
    const { question, at } = await asked(made);
    await expect(sign_in.passkeys.signIn(at, authenticator.answer(question, PUBLIC_URL))).rejects.toEqual(
      refusedAs('wrong_passkey'),
    );
    // The password stays.
    await signedIn(sign_in);
  });

  test('stays through a new password, because it is what still works when that is forgotten', async () => {
    await using made = await openTestSignIn();
    const { sign_in, smtp } = made;
    const { authenticator, cookies } = await withPasskey(made);
    await sign_in.requestReset(visit(), EMAIL);
    const token = tokenIn(await smtp.next(), 'reset');
    await sign_in.reset(visit(), { token, new_password: 'another battery staple' });
    expect(await isSignedIn(made, cookies)).toBe(false);
    expect(await isSignedIn(made, await enter(made, authenticator))).toBe(true);
  });

  test('is one of at most 20, and is noted when it comes and goes', async () => {
    const acts: string[] = [];
    await using opened = await openTestSignIn();
    const accounts = {
      ...opened.parts.accounts,
      notePasskey: (_: string, action: string, id: string) =>
        Promise.resolve(void acts.push(`${action} ${id}`)),
    };
    const made = { ...opened, sign_in: opened.reopen({ accounts }) };
    await addUser(made);
    const cookies = await signedIn(made.sign_in);
    const { set_cookies, ...begun_early } = await made.sign_in.passkeys.begin(pageOf(cookies), {
      password: PASSWORD,
    });
    for (let added = 0; added < 20; added += 1) await add(made, cookies);
    const late = { name: 'Late', ...new Authenticator().create(begun_early, PUBLIC_URL) };
    await expect(made.sign_in.passkeys.add(pageOf(cookies, cookieOf(set_cookies)), late)).rejects.toEqual(
      refusedAs('too_many_passkeys'),
    );
    await expect(made.sign_in.passkeys.begin(pageOf(cookies), { password: PASSWORD })).rejects.toEqual(
      refusedAs('too_many_passkeys'),
    );
    const [first] = await made.sign_in.passkeys.list(await sessionOf(made.sign_in, cookies));
    await made.sign_in.passkeys.remove(pageOf(cookies), { passkey_id: first?.id ?? '', password: PASSWORD });
    expect(acts.length).toBe(21);
    expect([acts[0], acts.at(-1)]).toEqual([`passkey.add ${first?.id}`, `passkey.remove ${first?.id}`]);
  });

  test('is tried 60 times from an address, then in a while', async () => {
    await using made = await openTestSignIn();
    const at = pageOf();
    for (let tries = 0; tries < 60; tries += 1) {
      await expect(
        made.sign_in.passkeys.signIn(at, {
          id: 'none',
          client_data: 'none',
          authenticator_data: 'none',
          signature: 'none',
        }),
      ).rejects.toEqual(refusedAs('passkey_ended'));
    }
    await expect(made.sign_in.passkeys.ask(at)).rejects.toEqual(refusedAs('too_many_attempts'));
  });

  test('that could not be stored or used is our own failure, and not a wrong one', async () => {
    await using made = await openTestSignIn();
    const { authenticator } = await withPasskey(made);
    const { question, at } = await asked(made);
    await made.execute('ALTER TABLE sessions RENAME TO sessions_away');
    const refusal: unknown = await made.sign_in.passkeys
      .signIn(at, authenticator.answer(question, PUBLIC_URL))
      .catch((error: unknown) => error);
    await made.execute('ALTER TABLE sessions_away RENAME TO sessions');
    expect(refusal).toBeInstanceOf(Error);
    expect(refusal).not.toHaveProperty('code', 'wrong_passkey');
  });
});

test('the operator’s reset leaves no passkey that an intruder’s session adds meanwhile, and no session by one', async () => {
  await using made = await openTestSignIn();
  await addUser(made);
  const cookies = await signedIn(made.sign_in);
  const { user_id } = await sessionOf(made.sign_in, cookies);
  const begun: Awaited<ReturnType<typeof begin>>[] = [];
  for (let times = 0; times < 5; times += 1) begun.push(await begin(made, cookies));
  const tried: Authenticator[] = [];
  const entered: string[] = [];
  const intrude = async () => {
    const next = begun.shift();
    if (next === undefined) throw new Error('more passkeys are added than were begun');
    tried.push(next.authenticator);
    try {
      await made.sign_in.passkeys.add(next.at, { name: '', ...next.created });
      entered.push(await enter(made, next.authenticator));
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
    }
  };
  const outside = AsyncLocalStorage.snapshot();
  const store: Pick<Store, 'transaction'> = {
    async transaction(work) {
      await intrude();
      return await made.store.transaction(async (records) => {
        const done = await work(records);
        // SQLite lets nobody else write inside a transaction.
        if (IS_ON_POSTGRES) await outside(intrude);
        return done;
      });
    },
  };
  const { clock } = made.context;
  const ended = await endSignIns({ clock, store }, OPERATOR, user_id);
  await intrude();
  expect(entered).toHaveLength(IS_ON_POSTGRES ? 2 : 1);
  expect(ended).toEqual({ passkeys: entered.length, had_second_factor: false });
  for (const cookie of [cookies, ...entered]) expect(await isSignedIn(made, cookie)).toBe(false);
  for (const one of tried) await expect(enter(made, one)).rejects.toEqual(refusedAs('wrong_passkey'));
});

describe('the owner of passkeys', () => {
  test.each([
    ['https://tds.example.com', { domain: 'tds.example.com', origin: 'https://tds.example.com' }],
    ['https://tds.example.com:8443/', { domain: 'tds.example.com', origin: 'https://tds.example.com:8443' }],
    ['http://localhost:8080', { domain: 'localhost', origin: 'http://localhost:8080' }],
    ['http://tds.example.com', null],
    ['https://10.0.0.1', null],
    ['https://[::1]:8080', null],
  ])('at %s', (public_url, party) => {
    expect(relyingPartyAt(public_url)).toEqual(party);
  });

  test.each([
    ['localhost:8080', 'http://localhost:8080', true],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080', false],
    ['tds.example.com', 'https://tds.example.com', false],
    ['localhost.example.com', 'http://localhost.example.com', false],
  ])('without a public address is this machine alone: %s', (host, origin, is_offered) => {
    const parties = new RelyingParties(null);
    expect(parties.isOffered(new Headers({ host }))).toBe(is_offered);
    const party = is_offered ? { domain: 'localhost', origin } : null;
    expect(parties.of(new Headers({ host, origin }))).toEqual(party);
  });
});
