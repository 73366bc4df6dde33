import { signUp } from '../../src/accounts/users.ts';
import type { ConsoleParts } from '../../src/console/console.ts';
import type { PasswordHashing } from '../../src/console/people/better-auth.ts';
import type { Mail } from '../../src/console/people/mail.ts';
import { startTestService, type TestService, type TestServiceOptions } from '../support/service.ts';

export const PASSWORD = 'correct horse battery';

/** Hashes at the least cost that there is: at better-auth's, a person costs a test a third of a second. */
export const CHEAP_PASSWORDS: PasswordHashing = {
  hash: (password) => Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 }),
  verify: ({ hash, password }) => Bun.password.verify(password, hash),
};

/** A real service with the console, whose mails are kept. */
export interface TestConsole {
  readonly service: TestService;
  /** Every mail that was sent, oldest first. */
  readonly mails: Mail[];
  /** The origin of its pages. */
  readonly origin: string;
  close(): Promise<void>;
}

/** Somebody who is signed in, as their browser asks. */
export interface Person {
  readonly user_id: string;
  readonly email: string;
  readonly organization_id: string;
  readonly default_project_id: string;
  /** The `Cookie` header of their session. */
  readonly cookie: string;
  /** The CSRF token of every change in their session. */
  readonly csrf_token: string;
  /** Asks the console's API; a body makes it a POST, and every change carries origin and token. */
  ask(path: string, options?: { readonly method?: string; readonly body?: unknown }): Promise<Response>;
}

/** Starts a service with its console on a fresh directory and a free port. */
export async function startTestConsole(
  options: TestServiceOptions = {},
  parts: Partial<ConsoleParts> = {},
): Promise<TestConsole> {
  const mails: Mail[] = [];
  let address = '';
  const service = await startTestService({
    cold: true,
    ...options,
    console: {
      secret: 'a1'.repeat(32),
      public_url: null,
      is_https: false,
      own_url: () => address,
      sign_up: 'open',
      mailer: {
        send: (mail) => {
          mails.push(mail);
          return Promise.resolve();
        },
        close: () => undefined,
      },
      has_mail_server: false,
      passwords: CHEAP_PASSWORDS,
      ...parts,
    },
  });
  address = service.server.address;
  const origin = parts.is_https === true ? address.replace('http:', 'https:') : address;
  return { service, mails, origin, close: () => service.close() };
}

/** Makes a user with a personal organization, gives them a password by a mailed link, and signs them in. */
export async function addPerson(
  made: TestConsole,
  { email, name = email.split('@')[0] ?? email, is_operator = false }: NewPerson,
): Promise<Person> {
  const { user, organization } = await signUp(made.service.accounts, { email, name });
  if (is_operator) {
    await made.service.execute(`UPDATE users SET is_operator = TRUE WHERE id = '${user.id}'`);
  }
  await change(made, '/console/api/reset-request', { email });
  const token = await mailedToken(made, email);
  await change(made, '/console/api/reset', { token, new_password: PASSWORD });
  return await signIn(made, {
    user_id: user.id,
    email,
    organization_id: organization.id,
    default_project_id: organization.default_project_id,
  });
}

interface NewPerson {
  readonly email: string;
  readonly name?: string;
  readonly is_operator?: boolean;
}

/** A session of somebody whose password is `PASSWORD`. */
export async function signIn(
  made: TestConsole,
  person: Pick<Person, 'user_id' | 'email' | 'organization_id' | 'default_project_id'>,
): Promise<Person> {
  const { service, origin } = made;
  const signed_in = await change(made, '/console/api/sign-in', { email: person.email, password: PASSWORD });
  const cookie = signed_in.headers
    .getSetCookie()
    .map((line) => line.split(';')[0] ?? '')
    .join('; ');
  const session = await service.fetch('/console/api/session', { headers: { cookie } });
  const { csrf_token }: { csrf_token: string } = JSON.parse(await session.text());
  return {
    ...person,
    cookie,
    csrf_token,
    ask: (path, { method, body } = {}) => {
      const sent = method ?? (body === undefined ? 'GET' : 'POST');
      const headers = { cookie, origin, 'x-csrf-token': csrf_token };
      return service.fetch(path, {
        method: sent,
        headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
    },
  };
}

/** A change that needs no session. Throws when it is refused. */
async function change({ service, origin }: TestConsole, path: string, body: unknown): Promise<Response> {
  const response = await service.fetch(path, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** The token of the newest mail to an address, once it is sent: mails go out after the answer. */
export async function mailedToken({ mails }: TestConsole, email: string): Promise<string> {
  const wait_until_ms = Date.now() + 60_000;
  while (Date.now() < wait_until_ms) {
    const text = mails.findLast(({ to }) => to === email)?.text ?? '';
    const token = /token=([\w-]+)/.exec(text)?.[1];
    if (token !== undefined) return token;
    await new Promise(setImmediate);
  }
  throw new Error(`no mail with a token came to ${email}`);
}

/** The newest mailed link to a page for an address, once it is sent: mails go out after the answer. */
export async function mailedLink({ mails }: TestConsole, email: string, page: string): Promise<string> {
  const wait_until_ms = Date.now() + 60_000;
  while (Date.now() < wait_until_ms) {
    const texts = mails.filter(({ to }) => to === email).map(({ text }) => text);
    const link = texts
      .flatMap((text) => text.split(/\s/))
      .findLast((word) => word.includes(`/console/${page}#`));
    if (link !== undefined) return link;
    await new Promise(setImmediate);
  }
  throw new Error(`no mail with a link to ${page} came to ${email}`);
}
