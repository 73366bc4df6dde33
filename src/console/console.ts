import type { DBAdapterInstance } from 'better-auth';
import { deleteAccount } from '../accounts/delete-account.ts';
import { AccountError } from '../accounts/errors.ts';
import { INVITATION_MS, readInvitation, type SentInvitation } from '../accounts/invitations.ts';
import { ensurePersonalOrganization } from '../accounts/organizations.ts';
import { DAY_MS } from '../clock.ts';
import { type RequestContext, RequestContexts } from '../http/context.ts';
import { API_PREFIX, consoleApi } from './api/api.ts';
import type { ConsoleServices } from './api/services.ts';
import { answerPage, isServed, pageFiles } from './bundle.ts';
import type { PasswordHashing } from './people/better-auth.ts';
import { Links } from './people/links.ts';
import type { Mailer } from './people/mail.ts';
import { invitationMail } from './people/mails.ts';
import { PasswordSignIn } from './people/password-sign-in.ts';
import type { SignUpRule } from './people/sign-in.ts';

/** What the console is made of that is not the service's own. */
export interface ConsoleParts {
  /** Signs cookies and makes CSRF tokens (`people/secret.ts`). */
  readonly secret: string;
  /** The address that people open, such as `https://tds.example.com`; null: the one that they name is believed. */
  readonly public_url: string | null;
  /** Whether people reach the console by https: its cookies are sent on nothing else then. */
  readonly is_https: boolean;
  /** The address that the service listens on, for the links of mails where no public one is given. */
  readonly own_url: () => string;
  readonly sign_up: SignUpRule;
  readonly mailer: Mailer;
  /** Other than better-auth's own, for tests that sign many people in. */
  readonly passwords?: PasswordHashing | undefined;
}

/** What the console takes of the service. */
export type ConsoleBase = Omit<ConsoleServices, 'sign_in' | 'public_origin' | 'is_https' | 'mailInvitation'>;

/** The console: its pages, and the API that they talk to. */
export interface Console {
  /** Every route of the API, whose path has the names of its parameters in it. */
  readonly routes: readonly { readonly method: string; readonly path: string }[];
  /** Answers a request of any path under `/console`. */
  handle(request: Request, context: RequestContext): Promise<Response>;
  /** Whether a request is for a page or one of its files, or carries a cookie that was given to a session. */
  passesOverBudget(request: Request): Promise<boolean>;
  /** Waits until all mails that are under way are sent or have failed. */
  close(): Promise<void>;
}

/** Makes the console. `database` is the one of the service, as better-auth takes it. */
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
    },
  });
  const services: ConsoleServices = {
    ...base,
    sign_in,
    public_origin: public_url === null ? null : new URL(public_url).origin,
    is_https,
    mailInvitation: (invitation, inviter_name) => sign_in.mail(mailOf(links, invitation, inviter_name)),
  };
  const contexts = new RequestContexts(() => {
    throw new Error('the console was asked without a context');
  });
  const api = consoleApi(services, contexts);
  return {
    routes: api.routes,
    async handle(request, context) {
      contexts.keep(request, context);
      return isOfApi(request)
        ? await api.handle(request)
        : answerPage(request, await pageFiles(), context.request_id);
    },
    async passesOverBudget(request) {
      if (!isOfApi(request) && isServed(request, await pageFiles())) return true;
      return await sign_in.isCookieSigned(request.headers);
    },
    close: () => sign_in.close(),
  };
}

/** The address that an open invitation is for; null where there is no such invitation. */
async function invitedAddress(base: ConsoleBase, token: string): Promise<string | null> {
  try {
    return (await readInvitation(base, token)).email;
  } catch (error) {
    if (error instanceof AccountError) return null;
    throw error;
  }
}

/** Whether a request is for the API; every other path of the console is a page. */
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
