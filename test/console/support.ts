import type { Db } from '../../db/sqlite/connection.ts';
import { signInDatabase } from '../../db/sqlite/sign-in-database.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { ensurePersonalOrganization } from '../../src/accounts/organizations.ts';
import { systemClock } from '../../src/clock.ts';
import { Links } from '../../src/console/people/links.ts';
import { printingMailer, smtpMailer } from '../../src/console/people/mail.ts';
import { PasswordSignIn, type SignInParts } from '../../src/console/people/password-sign-in.ts';
import type { SignIn, Visit } from '../../src/console/people/sign-in.ts';
import { randomIdentifiers } from '../../src/identifiers.ts';
import type { Problem } from '../../src/problems/problems.ts';
import { temporaryDatabase } from '../accounts/support.ts';
import { type ReceivedMail, startSmtpReceiver } from './smtp-receiver.ts';

export const PUBLIC_URL = 'https://tds.example.com';
export const SECRET = 'a1'.repeat(32);
export const PASSWORD = 'correct horse battery';

/** What a test of sign-in changes. */
export type Changes = Partial<Omit<SignInParts, 'database' | 'mailer'>> & {
  readonly smtp_url?: string;
  /** Is told of every statement before it runs. */
  readonly onStatement?: () => void;
};

/** What sign-in on that database is made of; its mails go nowhere. */
function partsOn(db: Db, store: SqliteStore): SignInParts {
  const context = { clock: systemClock, identifiers: randomIdentifiers };
  return {
    database: signInDatabase(db, store.outside),
    secret: SECRET,
    is_https: true,
    sign_up: 'open',
    links: new Links(() => PUBLIC_URL),
    mailer: printingMailer(() => undefined),
    accounts: {
      ensurePersonalOrganization: (user_id) => ensurePersonalOrganization({ store, ...context }, user_id),
      deleteAccount: () => Promise.reject(new Error('no test deletes an account')),
      invitedAddress: () => Promise.resolve(null),
    },
    ...context,
    problems: { report: () => undefined },
  };
}

/** Sign-in on a database that is there. */
export function signInOn(db: Db): PasswordSignIn {
  return new PasswordSignIn(partsOn(db, new SqliteStore(db)));
}

/** Sign-in on a real database file and a real SMTP server. */
export async function openTestSignIn(changes: Changes = {}) {
  const file = temporaryDatabase();
  const store = new SqliteStore(file.db);
  const smtp = await startSmtpReceiver();
  const problems: Problem[] = [];
  const { smtp_url = smtp.url, onStatement = () => undefined, ...parts } = changes;
  const context = { store, clock: systemClock, identifiers: randomIdentifiers };
  const made: SignInParts = {
    ...partsOn(file.db, store),
    database: signInDatabase(file.db, {
      read(work) {
        onStatement();
        return store.outside.read(work);
      },
      write(work) {
        onStatement();
        return store.outside.write(work);
      },
    }),
    mailer: smtpMailer(smtp_url, 'tds <tds@example.com>'),
    problems: { report: (problem) => void problems.push(problem) },
    ...parts,
  };
  const open = (more: Partial<SignInParts> = {}) => new PasswordSignIn({ ...made, ...more });
  const sign_in = open();
  return {
    ...file,
    store,
    context,
    parts: made,
    smtp,
    problems,
    sign_in,
    /** The same on the same database, as after a restart. */
    reopen: open,
    async [Symbol.asyncDispose]() {
      await sign_in.close();
      await smtp.close();
      file.remove();
    },
  };
}

export type TestSignIn = Awaited<ReturnType<typeof openTestSignIn>>;

/** A request with these cookies, from an address of its own unless one is given. */
export function visit(cookies = '', client_address = freshAddress(), user_agent = 'Test browser'): Visit {
  return { headers: new Headers({ cookie: cookies, 'user-agent': user_agent }), client_address };
}

let addresses = 0;
export function freshAddress(): string {
  addresses += 1;
  return `10.0.${addresses >> 8}.${addresses & 255}`;
}

/** The `Cookie` header that a browser sends after these `Set-Cookie` headers. */
export function cookieOf(set_cookies: readonly string[]): string {
  return set_cookies
    .filter((line) => !/max-age=0/i.test(line))
    .map((line) => line.split(';')[0] ?? '')
    .join('; ');
}

/** The token in the link of a mail to one of the console's pages. */
export function tokenIn(mail: ReceivedMail, page: string): string {
  const link = mail.text.split(/\s/).find((word) => word.startsWith(`${PUBLIC_URL}/console/${page}?token=`));
  const token = link === undefined ? null : new URL(link).searchParams.get('token');
  if (token === null) throw new Error(`no link to ${page} in: ${mail.text}`);
  return token;
}

/** Somebody who has signed up and verified their address. */
export async function addUser(
  { sign_in, smtp }: Pick<TestSignIn, 'smtp'> & { readonly sign_in: SignIn },
  email = 'ada@example.com',
): Promise<void> {
  await sign_in.signUp(visit(), { name: 'Ada Lovelace', email, password: PASSWORD });
  await sign_in.verify(visit(), tokenIn(await smtp.next(), 'verify'));
}

/** The cookies of a new session. */
export async function signedIn(
  sign_in: SignIn,
  email = 'ada@example.com',
  password = PASSWORD,
): Promise<string> {
  return cookieOf((await sign_in.signIn(visit(), { email, password })).set_cookies);
}

/** The session of these cookies. */
export async function sessionOf(sign_in: SignIn, cookies: string) {
  const session = await sign_in.sessionOf(new Headers({ cookie: cookies }));
  if (session === null) throw new Error('nobody is signed in');
  return session;
}
