import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { connect } from 'node:net';
import { OPERATOR } from '../../src/access/actor.ts';
import { invite } from '../../src/accounts/invitations.ts';
import { addMember } from '../../src/accounts/members.ts';
import type { Mail } from '../../src/console/people/mail.ts';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { systemClock } from '../../src/time/clock.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { parseRaw, sendRaw } from '../support/raw-http.ts';
import {
  addPerson,
  mailedToken,
  PASSWORD,
  type Person,
  signIn,
  startTestConsole,
  type TestConsole,
} from './people.ts';

setDefaultTimeout(120_000);

/** A cheap hash, because hashing is not under test here. */
const passwords = {
  hash: (password: string) => Promise.resolve(`hash of ${password}`),
  verify: ({ hash, password }: { hash: string; password: string }) =>
    Promise.resolve(hash === `hash of ${password}`),
};

/** Budgets come back by hand only: how long a hundred requests take is no matter either. */
const clock = new MovableClock({ now_ms: systemClock.now_ms, monotonic_ms: () => 1_000_000 });

let logged = '';
let made: TestConsole;
let ada: Person;
beforeAll(async () => {
  const output = new BoundedOutput({
    write(text, done) {
      logged += text;
      done();
      return true;
    },
  });
  made = await startTestConsole({ clock, log: createLog('info', output) }, { passwords });
  ada = await addPerson(made, { email: 'ada@example.com' });
});
afterAll(() => made.close());
beforeEach(() => made.service.clock.advance(6 * 3_600_000));

let count = 0;
const newPerson = () => addPerson(made, { email: `person${++count}@example.com` });
const inAda = (path: string) => `/console/api/organizations/${ada.organization_id}/${path}`;
const statusOf = async (response: Promise<Response>) => (await response).status;

async function codeOf(response: Promise<Response>): Promise<string | undefined> {
  const body: { error?: { code: string } } = JSON.parse(await (await response).text());
  return body.error?.code;
}

/** Adds somebody to Ada's organization. */
async function addReader(person: Person, role: 'admin' | 'reader' = 'reader'): Promise<void> {
  const { organization_id } = ada;
  await addMember(made.service.accounts, OPERATOR, { organization_id, user_id: person.user_id, role });
}

describe('a path that two programs read differently', () => {
  const targets = [
    '/healthz\\..\\console',
    '/\\console',
    '/x/../console',
    '/x/%2e%2e/console',
    '/x/.%2E/console/api/session',
    '/./console',
    '/x%2f..%2fconsole',
    '/console/..%2fapi/session',
    '/x/%5c../console',
    'http://tds.example.com/x/../console',
  ];
  test.each(targets)('is refused before it is looked up: %s', async (target) => {
    const head = `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    const { status, headers, body } = parseRaw(await sendRaw(made.service.server.address, head));
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({
      error: { code: 'malformed_request' },
      request_id: headers['x-request-id'],
    });
  });

  test.each(['/console/a.b', '/console/...', '/console/.a', '/console?x=/../\\', '/console/%41'])(
    'is no path with other dots, or with such a query: %s',
    async (target) => {
      const head = `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
      expect(parseRaw(await sendRaw(made.service.server.address, head)).status).toBe(200);
    },
  );
});

describe('a body', () => {
  test('above 64 KB is refused, whether its size is told before or not', async () => {
    const body = JSON.stringify({ email: 'a@example.com', role: 'reader', more: 'x'.repeat(65_536) });
    expect(await codeOf(ada.ask(inAda('invitations'), { body }))).toBe('request_too_large');
    const head = [
      `POST ${inAda('invitations')} HTTP/1.1`,
      'host: a',
      'origin: http://a',
      'connection: close',
      'content-type: application/json',
      'transfer-encoding: chunked',
    ];
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const answer = await sendRaw(made.service.server.address, `${head.join('\r\n')}\r\n\r\n`, [chunk, chunk]);
    expect(answer).toContain('request_too_large');
  });

  test('for which there is no room is refused, and is no failure of the service', async () => {
    const problems: string[] = [];
    const log = { ...createLog('silent'), problem: () => void problems.push('problem') };
    const unknown_bodies = new UnknownBodies({ total_bytes: 0, address_bytes: 0, body_bytes_min: 1 });
    const full = await startTestConsole({ log, body_limits: { unknown_bodies } });
    const headers = { origin: full.service.server.address, 'content-type': 'application/json' };
    const body = JSON.stringify({ email: 'ada@example.com' });
    const asked = full.service.fetch('/console/api/reset-request', { method: 'POST', headers, body });
    expect(await codeOf(asked)).toBe('overloaded');
    await full.close();
    expect(problems).toEqual([]);
  });

  test('names no other organization than the path', async () => {
    const other = await newPerson();
    await addReader(other);
    // Its owner may invite into it; the path names one where they are only a reader.
    const body = { email: 'eve@example.com', role: 'owner', organization_id: other.organization_id };
    expect(await statusOf(other.ask(inAda('invitations'), { body }))).toBe(422);
    expect(
      await (await other.ask(`/console/api/organizations/${other.organization_id}/invitations`)).json(),
    ).toEqual({
      items: [],
    });
  });

  test.each(['is_operator', 'isOperator', 'email', 'emailVerified', '__proto__', 'constructor'])(
    'with the field %s changes nothing of the account',
    async (name) => {
      const body = `{"name":"Eve","${name}":true}`;
      expect(await statusOf(ada.ask('/console/api/account', { method: 'PATCH', body }))).toBe(422);
      const session = await (await ada.ask('/console/api/session')).json();
      expect(session).toMatchObject({ user: { name: 'ada', email: 'ada@example.com', is_operator: false } });
      expect(Object.keys({})).toEqual([]);
    },
  );
});

test('ids and queries of any size and kind are refused, and are no failures', async () => {
  const long = 'x'.repeat(4_000);
  const paths = [
    `/console/api/organizations/${long}/keys`,
    `/console/api/organizations/%00/keys`,
    `/console/api/organizations/%ff/keys`,
    `/console/api/organizations/..%2f..%2f/keys`,
    `/console/api/organizations/constructor/keys`,
    inAda(`keys?revoked=${long}`),
    inAda('usage/rows?__proto__[x]=1'),
    inAda('usage/rows?after=x'),
    inAda(`usage/rows?after=${'9'.repeat(150)}.x`),
    inAda('usage/series?offset_minutes=999999'),
    ...['series', 'rows', 'values', 'export.csv'].flatMap((of) => [
      inAda(`usage/${of}?from_ms=1e308`),
      inAda(`usage/${of}?to_ms=9e15`),
      inAda(`usage/${of}?from_ms=-1`),
    ]),
    inAda('movements?entry_id=1e308&balance_micros=0'),
    inAda('trail?before=1e308'),
    inAda('trail?before=-1'),
    inAda('movements?entry_id=x'),
  ];
  for (const path of paths) {
    expect([path, [400, 404, 422].includes(await statusOf(ada.ask(path)))]).toEqual([path, true]);
  }
  expect(logged).not.toContain('"msg":"problem"');
});

test('a field with any JSON in the place of a text is refused, and is no failure', async () => {
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
  const fields = [
    '{"toString":1}',
    '[{"toString":null}]',
    '{"valueOf":1,"toString":{}}',
    '{"__proto__":1}',
    deep,
  ];
  for (const route of ['invitation/read', 'verify', 'reset', 'sign-in', 'sign-up']) {
    for (const field of fields) {
      const names = ['token', 'email', 'name', 'password', 'new_password'];
      const body = `{${names.map((name) => `"${name}":${name === 'token' || name === 'email' ? field : '"x"'}`).join()}}`;
      expect([route, field.slice(0, 30), await statusOf(ada.ask(`/console/api/${route}`, { body }))]).toEqual(
        [route, field.slice(0, 30), 422],
      );
    }
    expect(await statusOf(ada.ask(`/console/api/${route}`, { body: deep }))).toBe(422);
  }
  expect(logged).not.toContain('"msg":"problem"');
});

test.each([
  ['sign-in', 401, { email: 'ada\0@example.com', password: PASSWORD }],
  ['verification', 422, { email: 'ada\0@example.com' }],
  ['second-factor', 409, { code: 'a\0b' }],
  ['passkey', 422, { id: 'a\0b', client_data: 'x', authenticator_data: 'x', signature: 'x' }],
  ['reset-request', 422, { email: 'ada\0@example.com' }],
  ['verify', 409, { token: 'a\0b', password: PASSWORD }],
  ['reset', 409, { token: 'a\0b', new_password: PASSWORD }],
  ['invitation/read', 404, { token: 'a\0b' }],
  ['invitation/accept', 404, { token: 'a\0b' }],
  ['invitation/sign-up', 404, { token: 'a\0b', name: 'Eve', password: PASSWORD }],
  ['password', 403, { current_password: 'a\0b', new_password: PASSWORD }],
])(
  'a NUL, which PostgreSQL takes in no text, is refused by %s, and is no failure',
  async (path, status, body) => {
    expect(await statusOf(ada.ask(`/console/api/${path}`, { body }))).toBe(status);
    expect(logged).not.toContain('"msg":"problem"');
  },
);

describe('links', () => {
  test('name the address of the service, whatever host a client names', async () => {
    const email = 'victim@example.com';
    const body = JSON.stringify({ name: 'Victim', email, password: PASSWORD });
    const head = [
      'POST /console/api/sign-up HTTP/1.1',
      'host: evil.example',
      'x-forwarded-host: evil.example',
      'forwarded: host=evil.example;proto=https',
      'origin: http://evil.example',
      'connection: close',
      'content-type: application/json',
      `content-length: ${body.length}`,
    ];
    await sendRaw(made.service.server.address, `${head.join('\r\n')}\r\n\r\n`, [body]);
    await mailedToken(made, email);
    const text = made.mails.findLast(({ to }) => to === email)?.text ?? '';
    expect(text).toContain(`${made.service.server.address}/console/verify#token=`);
    expect(text).not.toContain('evil.example');
  });

  test('leave their tokens in no line of the log, nor do bodies and cookies', async () => {
    const secrets = { token: 'a-token-of-a-link', password: 'a-password-1' };
    for (const page of ['reset', 'verify', 'invitation', 'sign-in?return=x&']) {
      const path = `/console/${page}${page.includes('?') ? '' : '?'}token=${secrets.token}`;
      expect(await statusOf(made.service.fetch(path))).toBe(200);
    }
    const { address } = made.service.server;
    const headers = { origin: address, 'content-type': 'application/json' };
    const body = JSON.stringify({ token: secrets.token, new_password: secrets.password });
    expect(await statusOf(made.service.fetch('/console/api/reset', { method: 'POST', headers, body }))).toBe(
      409,
    );
    await ada.ask(inAda(`keys/${secrets.token}`), { method: 'DELETE' });
    expect(logged).toContain('"path":"/console"');
    const kept = [
      ...Object.values(secrets),
      ada.csrf_token,
      ada.cookie.split('=')[1] ?? '',
      'ada@example.com',
    ];
    expect(kept.filter((secret) => logged.includes(secret))).toEqual([]);
  });
});

test('a browser that leaves within its body has the status 499 in the log', async () => {
  const { address } = made.service.server;
  const { host, hostname, port } = new URL(address);
  const client = connect(Number(port), hostname);
  // It is asked for its body once the body is read.
  const is_read = new Promise((resolve) => client.once('data', resolve));
  const head = `POST /console/api/sign-in HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${address}\r\nContent-Length: 100\r\n`;
  client.write(`${head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n`);
  await is_read;
  expect(logged).not.toContain('"status":499');
  client.destroy();
  await eventually(() => logged.includes('"status":499'));
});

describe('sessions', () => {
  test('are new with each sign-in, whatever cookie comes with it', async () => {
    const first = await signIn(made, ada);
    const given = { email: ada.email, password: PASSWORD };
    const body = JSON.stringify(given);
    const response = await made.service.fetch('/console/api/sign-in', {
      method: 'POST',
      headers: {
        origin: made.service.server.address,
        cookie: first.cookie,
        'content-type': 'application/json',
      },
      body,
    });
    const [cookie = ''] = response.headers.getSetCookie();
    expect(cookie.split(';')[0]).not.toBe(first.cookie);
    expect(cookie).toContain('session_token=');
  });

  test('that go on are ended by a request with their token only', async () => {
    const session = await signIn(made, ada);
    const headers = { origin: made.service.server.address, cookie: session.cookie };
    const asked = made.service.fetch('/console/api/sign-out', { method: 'POST', headers });
    expect(await codeOf(asked)).toBe('invalid_csrf_token');
    expect(await statusOf(session.ask('/console/api/sessions'))).toBe(200);
    expect(await statusOf(session.ask('/console/api/sign-out', { method: 'POST' }))).toBe(200);
    expect(await codeOf(session.ask('/console/api/sessions'))).toBe('not_signed_in');
  });

  test('can change their password, however often somebody else guesses it', async () => {
    const person = await newPerson();
    const headers = { origin: made.service.server.address, 'content-type': 'application/json' };
    const body = JSON.stringify({ email: person.email, password: 'a wrong guess' });
    const codes: (string | undefined)[] = [];
    for (let times = 0; times < 11; times += 1) {
      codes.push(await codeOf(made.service.fetch('/console/api/sign-in', { method: 'POST', headers, body })));
    }
    expect(codes.at(-1)).toBe('too_many_attempts');
    const given = { current_password: PASSWORD, new_password: 'another battery staple' };
    expect(await statusOf(person.ask('/console/api/password', { body: given }))).toBe(200);
  });

  test('have guesses of their own at the password, which end too', async () => {
    const person = await newPerson();
    const body = { current_password: 'a wrong guess', new_password: PASSWORD };
    const codes: (string | undefined)[] = [];
    for (let times = 0; times < 11; times += 1) {
      codes.push(await codeOf(person.ask('/console/api/password', { body })));
    }
    expect(codes).toEqual([...Array<string>(10).fill('wrong_password'), 'too_many_attempts']);
  });

  test('of a deleted account end everywhere at once', async () => {
    const person = await newPerson();
    const elsewhere = await signIn(made, person);
    const body = { password: PASSWORD };
    expect(await statusOf(person.ask('/console/api/account', { method: 'DELETE', body }))).toBe(200);
    for (const session of [person, elsewhere]) {
      expect(await codeOf(session.ask('/console/api/sessions'))).toBe('not_signed_in');
    }
    await expect(signIn(made, person)).rejects.toThrow('wrong_credentials');
  });

  test('see a change of role, and a removal, with their next request', async () => {
    const person = await newPerson();
    await addReader(person, 'admin');
    const projects = () => person.ask(inAda('projects'), { body: { name: `Number ${++count}` } });
    expect(await statusOf(projects())).toBe(200);
    const member = inAda(`members/${person.user_id}`);
    await ada.ask(member, { method: 'PATCH', body: { role: 'reader' } });
    expect(await statusOf(projects())).toBe(403);
    await ada.ask(member, { method: 'DELETE' });
    expect(await statusOf(projects())).toBe(404);
  });
});

describe('one user', () => {
  test('founds organizations until they own 20', async () => {
    const person = await newPerson();
    const founded: (string | undefined)[] = [];
    for (let times = 0; times < 20; times += 1) {
      founded.push(await codeOf(person.ask('/console/api/organizations', { body: { name: 'Another' } })));
    }
    // The first is the personal one.
    expect(founded).toEqual([...Array<undefined>(19).fill(undefined), 'too_many_organizations']);
  });

  test('makes projects until the organization has 100 that are active', async () => {
    const person = await newPerson();
    const path = `/console/api/organizations/${person.organization_id}/projects`;
    const made_codes: (string | undefined)[] = [];
    for (let times = 0; times < 100; times += 1) {
      made_codes.push(await codeOf(person.ask(path, { body: { name: `Number ${times}` } })));
    }
    expect(made_codes).toEqual([...Array<undefined>(99).fill(undefined), 'too_many_projects']);
    await person.ask(`${path}/${person.default_project_id}/archive`, { method: 'POST' });
    expect(await statusOf(person.ask(path, { body: { name: 'One more' } }))).toBe(200);
  });

  test('changes so much a minute, and is told when to come back; reading goes on, and others change', async () => {
    const person = await newPerson();
    const rename = () => person.ask('/console/api/account', { method: 'PATCH', body: { name: 'Eve' } });
    const statuses = [];
    for (let times = 0; times < 120; times += 1) statuses.push(await statusOf(rename()));
    expect(new Set(statuses)).toEqual(new Set([200]));
    const refused = await rename();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await statusOf(person.ask('/console/api/sessions'))).toBe(200);
    expect(await statusOf(ada.ask('/console/api/account', { method: 'PATCH', body: { name: 'ada' } }))).toBe(
      200,
    );
    made.service.clock.advance(1_000);
    expect(await statusOf(rename())).toBe(200);
  });
});

describe('invitations', () => {
  test('of two acceptances at the same time, one makes a member', async () => {
    const person = await newPerson();
    const { token } = await invite(made.service.accounts, OPERATOR, {
      organization_id: ada.organization_id,
      email: person.email,
      role: 'developer',
    });
    const accepted = await Promise.all(
      Array.from({ length: 6 }, () =>
        statusOf(person.ask('/console/api/invitation/accept', { body: { token } })),
      ),
    );
    expect(accepted.sort()).toEqual([200, 409, 409, 409, 409, 409]);
    const members = await (await ada.ask(inAda('members'))).text();
    expect(members.split(person.email)).toHaveLength(2);
  });

  test('send no mailbox more than its mails, however often one is revoked and made again', async () => {
    const person = await newPerson();
    const path = `/console/api/organizations/${person.organization_id}/invitations`;
    const email = 'flooded@example.com';
    const codes: (string | undefined)[] = [];
    for (let times = 0; times < 4; times += 1) {
      codes.push(await codeOf(person.ask(path, { body: { email, role: 'reader' } })));
    }
    const { items }: { items: { id: string }[] } = JSON.parse(await (await person.ask(path)).text());
    const [open] = items;
    for (let times = 0; times < 2; times += 1) {
      codes.push(await codeOf(person.ask(`${path}/${open?.id}/resend`, { method: 'POST' })));
    }
    codes.push(
      await codeOf(person.ask(path, { body: { email: ` ${email.toUpperCase()}`, role: 'reader' } })),
    );
    expect(codes).toEqual([...Array<undefined>(5).fill(undefined), 'too_many_attempts', 'too_many_attempts']);
    expect(made.mails.filter(({ to }) => to === email)).toHaveLength(5);
  });

  test('of one user stop after 50, into whatever organization', async () => {
    const person = await newPerson();
    const path = `/console/api/organizations/${person.organization_id}/invitations`;
    const codes: (string | undefined)[] = [];
    for (let times = 0; times < 51; times += 1) {
      codes.push(
        await codeOf(person.ask(path, { body: { email: `x${times}@example.com`, role: 'reader' } })),
      );
    }
    expect(codes.filter((code) => code === undefined)).toHaveLength(50);
    expect(codes.at(-1)).toBe('too_many_attempts');
  });

  test('are mailed before the console ends', async () => {
    const taken = Promise.withResolvers<void>();
    const order: string[] = [];
    const mails: Mail[] = [];
    const mailer = {
      async send(mail: Mail) {
        mails.push(mail);
        if (mail.to !== 'invited@example.com') return;
        await taken.promise;
        order.push('sent');
      },
      close: () => void order.push('closed'),
    };
    const here = { ...(await startTestConsole({}, { passwords, mailer })), mails };
    const person = await addPerson(here, { email: 'inviter@example.com' });
    const path = `/console/api/organizations/${person.organization_id}/invitations`;
    const body = { email: 'invited@example.com', role: 'reader' };
    expect(await statusOf(person.ask(path, { body }))).toBe(200);
    const closed = here.service.service.services.console?.close();
    await here.service.fetch('/healthz');
    expect(order).toEqual([]);
    taken.resolve();
    await closed;
    expect(order).toEqual(['sent', 'closed']);
    await here.close();
  });
});
