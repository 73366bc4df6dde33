import type { DefinitionBase, Elysia, MetadataBase, SingletonBase } from 'elysia';
import type { Role } from '../../accounts/roles.ts';

/** One route as Eden reads it. */
interface Route<Answer, Body = undefined, Query = undefined, Params = Record<never, never>> {
  body: Body;
  params: Params;
  query: Query;
  headers: undefined;
  response: { 200: Answer };
}

interface Done {
  readonly done: true;
}

/** Who is signed in, and where they may work; or that nobody is. */
export type SessionAnswer =
  | {
      readonly user: {
        readonly id: string;
        readonly email: string;
        readonly name: string;
        readonly is_operator: boolean;
      };
      readonly csrf_token: string;
      readonly organizations: readonly { readonly id: string; readonly name: string; readonly role: Role }[];
      readonly expires_at_ms: number;
    }
  | { readonly user: null; readonly sign_up: 'open' | 'invited' };

interface OneSession {
  readonly id: string;
  readonly is_current: boolean;
  readonly user_agent: string;
  readonly client_address: string;
  readonly created_at_ms: number;
  readonly last_seen_at_ms: number;
  readonly expires_at_ms: number;
}

interface Invitation {
  readonly organization_id: string;
  readonly organization_name: string;
  readonly email: string;
  readonly role: Role;
  readonly expires_at_ms: number;
}

/** The routes of people and their sessions. */
interface PeopleRoutes {
  session: { get: Route<SessionAnswer> };
  'sign-up': {
    post: Route<Done, { name: string; email: string; password: string; invitation_token?: string }>;
  };
  'sign-in': { post: Route<Done, { email: string; password: string }> };
  'sign-out': { post: Route<Done> };
  verify: { post: Route<Done, { token: string }> };
  verification: { post: Route<Done, { email: string }> };
  'reset-request': { post: Route<Done, { email: string }> };
  reset: { post: Route<Done, { token: string; new_password: string }> };
  password: { post: Route<Done, { current_password: string; new_password: string }> };
  sessions: {
    get: Route<{ readonly items: readonly OneSession[] }>;
    ':session_id': { delete: Route<Done, undefined, undefined, { session_id: string }> };
    'end-others': { post: Route<Done> };
  };
  account: {
    patch: Route<Done, { name: string }>;
    delete: Route<Done, { password: string }>;
  };
  invitation: {
    read: { post: Route<Invitation, { token: string }> };
    accept: { post: Route<{ readonly organization_id: string }, { token: string }> };
  };
}

/** The type of the console's API, as Eden takes it. */
export type ConsoleApi = Elysia<
  '',
  SingletonBase,
  DefinitionBase,
  MetadataBase,
  { console: { api: PeopleRoutes } }
>;
