import type { DBAdapterInstance } from 'better-auth';
import { AccountError } from '../access/account-error.ts';
import { deleteAccount } from '../accounts/delete-account.ts';
import { INVITATION_MS, readInvitation, type SentInvitation } from '../accounts/invitations.ts';
import { ensurePersonalOrganization } from '../accounts/organizations.ts';
import { notePasskey } from '../accounts/passkeys.ts';
import { noteSecondFactor } from '../accounts/second-factors.ts';
import { type RequestContext, RequestContexts } from '../http/context.ts';
import type { DueAlertMail } from '../store/alert-records.ts';
import { DAY_MS } from '../time/clock.ts';
import { API_PREFIX, consoleApi } from './api/api.ts';
import type { ConsoleServices } from './api/services.ts';
import { answerPage, isServed, pageFiles } from './bundle.ts';
import { alertMail } from './people/alert-mail.ts';
import { COOKIE_PREFIX, type PasswordHashing } from './people/better-auth.ts';
import { Links } from './people/links.ts';
import type { Mailer } from './people/mail.ts';
import { invitationMail } from './people/mails.ts';
import { PasswordSignIn } from './people/password-sign-in.ts';
import type { SignUpRule } from './people/sign-in.ts';

/** A cookie of the console's own. */
const OWN_COOKIE = new RegExp(`^\\s*(?:__Secure-)?${COOKIE_PREFIX}\\.`);
/** More cookies than the console gives a browser. */
const COOKIES_MAX = 16;

/** The parts of the console that are not the service's own. */
export interface ConsoleParts {
  /** The secret that signs cookies and derives CSRF tokens (`people/secret.ts`). */
  readonly secret: string;
  /**
   * The address that people open, such as `https://tds.example.com`; null to trust the `Host` of requests.
   */
  readonly public_url: string | null;
  /** True if the console is reached by https; then its cookies are sent only by https. */
  readonly is_https: boolean;
  /** Returns the address of the service, for links in mails where no public one is given. */
  readonly own_url: () => string;
  readonly sign_up: SignUpRule;
  readonly mailer: Mailer;
  /** True if mails reach people; then alerts are mailed, too. */
  readonly has_mail_server: boolean;
  /** Replaces better-auth's hashing, for tests that sign many people in. */
  readonly passwords?: PasswordHashing | undefined;
}

/** The parts of the service that the console uses. */
export type ConsoleBase = Omit<ConsoleServices, 'sign_in' | 'public_origin' | 'is_https' | 'mailInvitation'>;

/** The console: its pages, and their API. */
export interface Console {
  /** Every route of the API, with its parameters' names in the path. */
  readonly routes: readonly { readonly method: string; readonly path: string }[];
  /** Answers a request of any path under `/console`. */
  handle(request: Request, context: RequestContext): Promise<Response>;
  /** Returns true if a request is for a page or one of its files, or has the signed cookie of a session. */
  passesOverBudget(request: Request): Promise<boolean>;
  /** Mails an alert to one member, and rejects with `MailNotSent`; null without a mail server. */
  readonly mailAlert: ((mail: DueAlertMail) => Promise<void>) | null;
  /** Waits until all mails in progress are sent or have failed. */
  close(): Promise<void>;
}

/** Opens the console. `database` is the service's own, as better-auth takes it. */
export function openConsole(base: ConsoleBase, parts: ConsoleParts, database: DBAdapterInstance): Console {
  const { public_url, is_https, own_url } = parts;
  const links = new Links(() => public_url ?? own_url());
  const sign_in = new PasswordSignIn({
    ...base,
    ...parts,
    database,
    links,
    accounts: {
      ensurePersonalOrganization: (user_id) => ensurePersonalOrganization(base, user_id),
      deleteAccount: (user_id) => deleteAccount(base, { kind: 'user', user_id }),
      invitedAddress: (token) => invitedAddress(base, token),
      noteSecondFactor: (user_id, action) => noteSecondFactor(base, { kind: 'user', user_id }, action),
      notePasskey: (user_id, action, passkey_id) =>
        notePasskey(base, { kind: 'user', user_id }, { action, passkey_id }),
    },
  });
  const services: ConsoleServices = {
    ...base,
    sign_in,
    public_origin: public_url === null ? null : new URL(public_url).origin,
    is_https,
    mailInvitation: (invitation, inviter_name) => sign_in.mail(mailOf(links, invitation, inviter_name)),
  };
  const contexts = new RequestContexts();
  const api = consoleApi(services, contexts);
  return {
    routes: api.routes,
    async handle(request, context) {
      contexts.keep(request, context);
      keepOwnCookies(request);
      return isOfApi(request)
        ? await api.handle(request)
        : answerPage(request, await pageFiles(), context.request_id);
    },
    async passesOverBudget(request) {
      if (!isOfApi(request) && isServed(request, await pageFiles())) return true;
      keepOwnCookies(request);
      return await sign_in.isCookieSigned(request.headers);
    },
    mailAlert: parts.has_mail_server ? (mail) => parts.mailer.send(alertMail(mail, links)) : null,
    close: () => sign_in.close(),
  };
}

/** Returns the address of an open invitation; null where there is none. */
async function invitedAddress(base: ConsoleBase, token: string): Promise<string | null> {
  try {
    return (await readInvitation(base, token)).email;
  } catch (error) {
    if (error instanceof AccountError) return null;
    throw error;
  }
}

/** Leaves a request only cookies of ours, and few: better-auth keys a `Map`, whose hash has no seed, by their names. */
function keepOwnCookies({ headers }: Request): void {
  const cookies = headers
    .get('cookie')
    ?.split(';')
    .filter((cookie) => OWN_COOKIE.test(cookie));
  if (cookies !== undefined) headers.set('cookie', cookies.slice(0, COOKIES_MAX).join(';'));
}

/** Returns true if a request is for the API; every other path of the console is a page. */
function isOfApi({ url }: Request): boolean {
  const { pathname } = new URL(url);
  return pathname === API_PREFIX || pathname.startsWith(`${API_PREFIX}/`);
}

function mailOf(links: Links, invitation: SentInvitation, inviter_name: string) {
  const { organization_name, role, token, email, is_trusted } = invitation;
  const days = INVITATION_MS / DAY_MS;
  return invitationMail(email, {
    organization_name: is_trusted ? organization_name : null,
    inviter_name: is_trusted ? inviter_name : null,
    role,
    link: links.invitation(token),
    days,
  });
}
