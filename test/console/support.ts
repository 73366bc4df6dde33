import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/bun-sql';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import { signInDatabase as signInOnPostgres } from '../../db/postgres/sign-in-database.ts';
import type { Db } from '../../db/sqlite/connection.ts';
import { signInDatabase as signInOnSqlite } from '../../db/sqlite/sign-in-database.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { ensurePersonalOrganization } from '../../src/accounts/organizations.ts';
import { Links } from '../../src/console/people/links.ts';
import { printingMailer, smtpMailer } from '../../src/console/people/mail.ts';
import { PasswordSignIn, type SignInParts } from '../../src/console/people/password-sign-in.ts';
import type { Visit } from '../../src/console/people/sign-in.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import type { Problem } from '../../src/problems/problems.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/time/clock.ts';
import { temporaryDatabase } from '../accounts/support.ts';
import { giveBackDatabase, takeDatabase } from '../support/emptied-postgres.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { execute, IS_ON_POSTGRES, type StoredRows } from '../support/service.ts';
import { CHEAP_PASSWORDS } from './people.ts';
import { type ReceivedMail, startSmtpReceiver } from './smtp-receiver.ts';

export const PUBLIC_URL = 'https://tds.example.com';
export const SECRET = 'a1'.repeat(32);
export const PASSWORD = 'correct horse battery';

/** As many as a small service has; more than one, so that statements do overtake each other. */
const CONNECTIONS = 4;

/** The parts that a test of sign-in replaces. */
export type Changes = Partial<Omit<SignInParts, 'database' | 'mailer'>> & {
  readonly smtp_url?: string;
  /** Is told of every statement of sign-in before it runs. */
  readonly onStatement?: () => void;
};

/** A real database, as sign-in needs it. */
interface OpenDatabase {
  readonly store: Store;
  readonly database: SignInParts['database'];
  readonly rows: StoredRows;
  /** The bytes of its files. */
  bytes(): Promise<Buffer>;
  close(): Promise<void>;
}

function openSqlite(onStatement: () => void): OpenDatabase {
  const { db, path, remove } = temporaryDatabase();
  const store = new SqliteStore(db);
  return {
    store,
    database: signInOnSqlite(db, {
      read(work) {
        onStatement();
        return store.outside.read(work);
      },
      write(work) {
        onStatement();
        return store.outside.write(work);
      },
    }),
    rows: { of: 'sqlite', db },
    bytes: () => Promise.try(() => Buffer.concat([path, `${path}-wal`].map((file) => readFileSync(file)))),
    close: () => Promise.try(remove),
  };
}

async function openPostgres(onStatement: () => void): Promise<OpenDatabase> {
  const taken = await takeDatabase();
  const { db } = await taken.connect({ connections: CONNECTIONS });
  const watched = drizzle(db.$client, { logger: { logQuery: onStatement } });
  const rows = { of: 'postgres', db } as const;
  return {
    store: new PostgresStore(db),
    database: signInOnPostgres(watched),
    rows,
    async bytes() {
      const [found] = await execute(rows, 'SELECT oid FROM pg_database WHERE datname = current_database()');
      await execute(rows, 'CHECKPOINT');
      const folder = join((await sharedPostgres()).folder, 'data', 'base', String(found?.oid));
      return Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))));
    },
    close: () => giveBackDatabase(taken),
  };
}

/** Returns the parts of sign-in on that database, without mails. */
function partsOn(database: SignInParts['database'], store: Store): SignInParts {
  const context = { clock: systemClock, identifiers: randomIdentifiers };
  return {
    database,
    secret: SECRET,
    is_https: true,
    public_url: PUBLIC_URL,
    sign_up: 'open',
    links: new Links(() => PUBLIC_URL),
    mailer: printingMailer(() => undefined),
    accounts: {
      ensurePersonalOrganization: (user_id) => ensurePersonalOrganization({ store, ...context }, user_id),
      deleteAccount: () => Promise.reject(new Error('no test deletes an account')),
      invitedAddress: () => Promise.resolve(null),
      noteSecondFactor: () => Promise.resolve(),
      notePasskey: () => Promise.resolve(),
    },
    ...context,
    problems: { report: () => undefined },
    passwords: CHEAP_PASSWORDS,
  };
}

/** Sign-in on a database file that is there. */
export function signInOn(db: Db): PasswordSignIn {
  const store = new SqliteStore(db);
  return new PasswordSignIn(partsOn(signInOnSqlite(db, store.outside), store));
}

/** Sign-in on a real database and a real SMTP server. */
export async function openTestSignIn(changes: Changes = {}) {
  const { smtp_url, onStatement = () => undefined, ...parts } = changes;
  const opened = IS_ON_POSTGRES ? await openPostgres(onStatement) : openSqlite(onStatement);
  const { store, rows, bytes } = opened;
  const smtp = await startSmtpReceiver();
  const problems: Problem[] = [];
  const context = { store, clock: systemClock, identifiers: randomIdentifiers };
  const made: SignInParts = {
    ...partsOn(opened.database, store),
    mailer: smtpMailer(smtp_url ?? smtp.url, 'tds <tds@example.com>'),
    problems: { report: (problem) => void problems.push(problem) },
    ...parts,
  };
  const open = (more: Partial<SignInParts> = {}) => new PasswordSignIn({ ...made, ...more });
  const sign_in = open();
  return {
    store,
    /** Runs a statement that both databases understand, outside of the store. */
    execute: (statement: string) => execute(rows, statement),
    bytes,
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
      await opened.close();
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
  const link = mail.text.split(/\s/).find((word) => word.startsWith(`${PUBLIC_URL}/console/${page}#token=`));
  const token = link === undefined ? null : new URLSearchParams(new URL(link).hash.slice(1)).get('token');
  if (token === null) throw new Error(`no link to ${page} in: ${mail.text}`);
  return token;
}

/** Somebody who has signed up and verified their address, and is signed in nowhere. */
export async function addUser(
  { sign_in, smtp }: Pick<TestSignIn, 'smtp'> & { readonly sign_in: PasswordSignIn },
  email = 'ada@example.com',
): Promise<void> {
  await sign_in.signUp(visit(), { name: 'Ada Lovelace', email, password: PASSWORD });
  const token = tokenIn(await smtp.next(), 'verify');
  const { set_cookies } = await sign_in.verify(visit(), { token, password: PASSWORD });
  await sign_in.signOut(visit(cookieOf(set_cookies)));
}

/** The cookies of a new session. */
export async function signedIn(
  sign_in: PasswordSignIn,
  email = 'ada@example.com',
  password = PASSWORD,
): Promise<string> {
  return cookieOf((await sign_in.signIn(visit(), { email, password })).set_cookies);
}

/** The session of these cookies. */
export async function sessionOf(sign_in: PasswordSignIn, cookies: string) {
  const session = await sign_in.sessionOf(new Headers({ cookie: cookies }));
  if (session === null) throw new Error('nobody is signed in');
  return session;
}
