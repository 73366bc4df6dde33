import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { type SentInvitation, invite as sendInvitation } from '../../src/accounts/invitations.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { addMember } from '../../src/accounts/members.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createProject } from '../../src/accounts/projects.ts';
import { signUp } from '../../src/accounts/users.ts';
import { API_PREFIX } from '../../src/console/api/api.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { cancelTopUp, startTopUp } from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import { addPasskeyRow } from '../store/sign-ins.ts';
import { newEntryId } from '../support/money.ts';
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

/** Who asks: a member with each role, a user with the operator's flag, a user who is neither, and no user. */
type Caller = Role | 'operator' | 'stranger' | 'nobody';

const SIGNED_IN: readonly Caller[] = [...ROLES, 'operator', 'stranger'];
const CALLERS: readonly Caller[] = [...SIGNED_IN, 'nobody'];

/** The roles of the contract's role table, and of the issue where the contract has no row. */
const SEERS: readonly Caller[] = ROLES;
const MANAGERS: readonly Caller[] = ['owner', 'admin'];
const KEY_MAKERS: readonly Caller[] = ['owner', 'admin', 'developer'];
const OPERATORS: readonly Caller[] = ['operator'];
const PAYERS: readonly Caller[] = ['owner', 'admin', 'billing'];

/** The objects of a request: those of one organization, or missing ones. */
interface Place {
  readonly organization_id: string;
  readonly project_id: string;
  readonly key_id: string;
  readonly user_id: string;
  readonly invitation_id: string;
  readonly payment_id: string;
  readonly session_id: string;
  readonly passkey_id: string;
}

interface Given {
  readonly query?: string;
  readonly body?: unknown;
}

/** One route, and who may ask it what. */
interface Row {
  readonly route: string;
  /** The case of this request, if a route has several rows. */
  readonly about?: string;
  /** Who gets `status`. Of the rest members get 403, others 404, and who is not signed in 401. */
  readonly may: readonly Caller[];
  /** 200 unless given: what whoever may ask gets for this request. */
  readonly status?: number;
  readonly given?: (at: Place, caller: Caller) => Given | Promise<Given>;
  /** Role of the member, or of the invitation, that the path names. */
  readonly named_role?: Role;
  /** Who made the key that the path names; the operator at the command line by default. */
  readonly made_by?: 'caller';
  /** Resolves when all is done that the request began. */
  readonly after?: () => Promise<unknown>;
  /** Ends the session that asks. */
  readonly ends_session?: true;
}

const IN = '/organizations/:organization_id';
const named = { name: 'A new name' };
const model = { id: 'decision-1' };
const filtered = ({ project_id, key_id }: Place): Given => ({
  query: `project_id=${project_id}&api_key_id=${key_id}`,
});

const ROWS: readonly Row[] = [
  { route: 'GET /session', may: CALLERS },
  {
    route: 'POST /sign-up',
    may: CALLERS,
    given: () => ({ body: { name: 'Eve', email: freshEmail(), password: PASSWORD } }),
    // It writes after the answer.
    after: () => mailedToken(made, `person${count}@example.com`),
  },
  { route: 'POST /verification', may: CALLERS, given: () => ({ body: { email: freshEmail() } }) },
  {
    route: 'POST /verify',
    may: CALLERS,
    status: 409,
    given: () => ({ body: { token: 'none', password: PASSWORD } }),
  },
  {
    route: 'POST /sign-in',
    may: CALLERS,
    status: 401,
    given: () => ({ body: { email: freshEmail(), password: PASSWORD } }),
  },
  { route: 'POST /sign-out', may: CALLERS, ends_session: true },
  { route: 'POST /reset-request', may: CALLERS, given: () => ({ body: { email: freshEmail() } }) },
  {
    route: 'POST /reset',
    may: CALLERS,
    status: 409,
    given: () => ({ body: { token: 'none', new_password: PASSWORD } }),
  },
  {
    route: 'POST /invitation/read',
    may: CALLERS,
    given: async () => ({ body: { token: (await invite(elsewhere, 'reader')).token } }),
  },
  {
    route: 'POST /invitation/sign-up',
    may: CALLERS,
    given: async () => {
      // All callers have one address, and it has few sign-ups.
      made.service.clock.advance(30 * 60_000);
      return { body: { token: (await invite(elsewhere, 'reader')).token, name: 'Eve', password: PASSWORD } };
    },
  },
  {
    route: 'POST /invitation/accept',
    may: SIGNED_IN,
    given: async (_, caller) => ({
      body: { token: (await invite(elsewhere, 'reader', people.get(caller)?.email)).token },
    }),
  },
  {
    route: 'POST /invitation/accept',
    about: 'of an invitation of somebody else',
    may: SIGNED_IN,
    status: 403,
    given: async () => ({ body: { token: (await invite(elsewhere, 'owner')).token } }),
  },
  {
    route: 'POST /second-factor',
    may: CALLERS,
    status: 409,
    given: () => ({ body: { code: '000000' } }),
  },
  { route: 'GET /account/second-factor/', may: SIGNED_IN },
  {
    route: 'POST /account/second-factor/',
    about: 'with a wrong password',
    may: SIGNED_IN,
    status: 403,
    given: () => ({ body: { password: 'not the password' } }),
  },
  {
    route: 'POST /account/second-factor/',
    may: SIGNED_IN,
    given: () => ({ body: { password: PASSWORD } }),
  },
  {
    route: 'POST /account/second-factor/confirm',
    about: 'with a wrong code',
    may: SIGNED_IN,
    status: 403,
    given: () => ({ body: { code: 'no code' } }),
  },
  {
    route: 'POST /account/second-factor/recovery-codes',
    about: 'without a second factor',
    may: SIGNED_IN,
    status: 409,
    given: () => ({ body: { password: PASSWORD } }),
  },
  {
    route: 'DELETE /account/second-factor/',
    about: 'with a wrong password',
    may: SIGNED_IN,
    status: 403,
    given: () => ({ body: { password: 'not the password' } }),
  },
  // The service is at an address where browsers have no passkeys; test/console/passkeys.test.ts has another.
  { route: 'POST /passkey/question', may: CALLERS, status: 409 },
  {
    route: 'POST /passkey/',
    may: CALLERS,
    status: 409,
    given: () => ({ body: { id: 'x', client_data: 'x', authenticator_data: 'x', signature: 'x' } }),
  },
  { route: 'GET /account/passkeys/', may: SIGNED_IN },
  {
    route: 'POST /account/passkeys/begin',
    may: SIGNED_IN,
    status: 409,
    given: () => ({ body: { password: PASSWORD } }),
  },
  {
    route: 'POST /account/passkeys/',
    may: SIGNED_IN,
    status: 409,
    given: () => ({ body: { name: '', id: 'x', client_data: 'x', attestation: 'x', transports: '' } }),
  },
  {
    route: 'DELETE /account/passkeys/:passkey_id',
    about: 'of somebody else',
    may: SIGNED_IN,
    status: 404,
    given: () => ({ body: { password: PASSWORD } }),
  },
  { route: 'PATCH /account', may: SIGNED_IN, given: () => ({ body: named }) },
  { route: 'GET /account/deletion', may: SIGNED_IN },
  {
    route: 'DELETE /account',
    about: 'with a wrong password',
    may: SIGNED_IN,
    status: 403,
    given: () => ({ body: { password: 'not the password' } }),
  },
  {
    route: 'POST /password',
    about: 'with a wrong password',
    may: SIGNED_IN,
    status: 403,
    given: () => ({ body: { current_password: 'not the password', new_password: PASSWORD } }),
  },
  { route: 'GET /alerts/', may: SIGNED_IN },
  { route: 'POST /alerts/read', may: SIGNED_IN, given: () => ({ body: { up_to_id: 1 } }) },
  { route: 'PATCH /alerts/', may: SIGNED_IN, given: () => ({ body: { gets_mails: true } }) },
  { route: 'GET /sessions', may: SIGNED_IN },
  { route: 'POST /sessions/end-others', may: SIGNED_IN },
  { route: 'DELETE /sessions/:session_id', about: 'of somebody else', may: SIGNED_IN, status: 404 },

  { route: 'POST /organizations/', may: SIGNED_IN, given: () => ({ body: named }) },
  { route: `PATCH ${IN}`, may: MANAGERS, given: () => ({ body: named }) },
  { route: `GET ${IN}/first-steps`, may: SEERS },

  { route: `GET ${IN}/members/`, may: SEERS },
  { route: `PATCH ${IN}/members/:user_id`, may: MANAGERS, given: () => ({ body: { role: 'billing' } }) },
  {
    route: `PATCH ${IN}/members/:user_id`,
    about: 'to owner',
    may: ['owner'],
    given: () => ({ body: { role: 'owner' } }),
  },
  {
    route: `PATCH ${IN}/members/:user_id`,
    about: 'of an owner',
    may: ['owner'],
    named_role: 'owner',
    given: () => ({ body: { role: 'reader' } }),
  },
  { route: `DELETE ${IN}/members/:user_id`, may: MANAGERS },
  { route: `DELETE ${IN}/members/:user_id`, about: 'of an owner', may: ['owner'], named_role: 'owner' },

  { route: `GET ${IN}/invitations/`, may: MANAGERS },
  {
    route: `POST ${IN}/invitations/`,
    may: MANAGERS,
    given: () => ({ body: { email: freshEmail(), role: 'admin' } }),
  },
  {
    route: `POST ${IN}/invitations/`,
    about: 'as owner',
    may: ['owner'],
    given: () => ({ body: { email: freshEmail(), role: 'owner' } }),
  },
  { route: `POST ${IN}/invitations/:invitation_id/resend`, may: MANAGERS },
  {
    route: `POST ${IN}/invitations/:invitation_id/resend`,
    about: 'as owner',
    may: ['owner'],
    named_role: 'owner',
  },
  { route: `DELETE ${IN}/invitations/:invitation_id`, may: MANAGERS },
  {
    route: `DELETE ${IN}/invitations/:invitation_id`,
    about: 'as owner',
    may: ['owner'],
    named_role: 'owner',
  },

  { route: `GET ${IN}/keys/`, may: SEERS },
  {
    route: `GET ${IN}/keys/`,
    about: 'that are revoked',
    may: SEERS,
    given: () => ({ query: 'revoked=true' }),
  },
  {
    route: `POST ${IN}/keys/`,
    may: KEY_MAKERS,
    given: ({ project_id }) => ({ body: { project_id, name: 'New' } }),
  },
  {
    route: `POST ${IN}/keys/`,
    about: 'with a name that is none',
    may: KEY_MAKERS,
    status: 422,
    given: ({ project_id }) => ({ body: { project_id, name: ' ' } }),
  },
  {
    route: `PATCH ${IN}/keys/:key_id`,
    about: 'of somebody else',
    may: MANAGERS,
    given: () => ({ body: { lifetime_ms: null } }),
  },
  {
    route: `PATCH ${IN}/keys/:key_id`,
    about: 'of their own',
    may: KEY_MAKERS,
    made_by: 'caller',
    given: () => ({ body: { lifetime_ms: null } }),
  },
  {
    route: `POST ${IN}/keys/:key_id/limit`,
    about: 'of somebody else',
    may: MANAGERS,
    given: () => ({ body: { monthly_limit_micros: 5 } }),
  },
  {
    route: `POST ${IN}/keys/:key_id/limit`,
    about: 'of their own',
    may: KEY_MAKERS,
    made_by: 'caller',
    given: () => ({ body: { monthly_limit_micros: 5 } }),
  },
  {
    route: `POST ${IN}/keys/:key_id/rotate`,
    about: 'of somebody else',
    may: MANAGERS,
    given: () => ({ body: { overlap_ms: 0 } }),
  },
  {
    route: `POST ${IN}/keys/:key_id/rotate`,
    about: 'of their own',
    may: KEY_MAKERS,
    made_by: 'caller',
    given: () => ({ body: { overlap_ms: 0 } }),
  },
  { route: `DELETE ${IN}/keys/:key_id`, about: 'of somebody else', may: MANAGERS },
  { route: `DELETE ${IN}/keys/:key_id`, about: 'of their own', may: SEERS, made_by: 'caller' },

  { route: `GET ${IN}/projects/`, may: SEERS },
  {
    route: `GET ${IN}/projects/`,
    about: 'that are archived',
    may: SEERS,
    given: () => ({ query: 'archived=true' }),
  },
  { route: `POST ${IN}/projects/`, may: MANAGERS, given: () => ({ body: { name: freshName() } }) },
  {
    route: `PATCH ${IN}/projects/:project_id`,
    may: MANAGERS,
    given: () => ({ body: { name: freshName(), spend_limit_micros: 1_000_000 } }),
  },
  {
    route: `PATCH ${IN}/projects/:project_id`,
    about: 'to a name that is none',
    may: MANAGERS,
    status: 422,
    given: () => ({ body: { name: ' ' } }),
  },
  { route: `POST ${IN}/projects/:project_id/archive`, may: MANAGERS },

  { route: `GET ${IN}/usage/series`, may: SEERS },
  { route: `GET ${IN}/usage/series`, about: 'of a project and a key', may: SEERS, given: filtered },
  { route: `GET ${IN}/usage/rows`, may: SEERS },
  { route: `GET ${IN}/usage/rows`, about: 'of a project and a key', may: SEERS, given: filtered },
  { route: `GET ${IN}/usage/values`, may: SEERS },
  { route: `GET ${IN}/usage/keys`, may: SEERS },
  { route: `GET ${IN}/usage/limits`, may: SEERS },
  { route: `GET ${IN}/usage/refusals`, may: SEERS },
  { route: `GET ${IN}/usage/export.csv`, may: SEERS },
  { route: `GET ${IN}/usage/export.csv`, about: 'of a project and a key', may: SEERS, given: filtered },

  { route: `GET ${IN}/billing`, may: SEERS },
  { route: `GET ${IN}/movements`, may: SEERS },
  { route: `GET ${IN}/movements`, about: 'by request', may: SEERS, given: () => ({ query: 'by=request' }) },
  { route: `PATCH ${IN}/credit-alert`, may: PAYERS, given: () => ({ body: { credit_alert_micros: null } }) },
  { route: `POST ${IN}/top-ups`, may: PAYERS, given: () => ({ body: { amount_micros: 5_000_000 } }) },
  {
    route: `POST ${IN}/playground/:key_id`,
    about: 'without credit',
    may: KEY_MAKERS,
    status: 402,
    given: () => ({ body: {} }),
  },
  {
    route: `POST ${IN}/playground/:key_id/tokens`,
    about: 'without credit',
    may: KEY_MAKERS,
    status: 402,
    given: () => ({ body: {} }),
  },
  {
    route: `POST ${IN}/batch/:key_id`,
    about: 'without a key of its run',
    may: KEY_MAKERS,
    status: 400,
    given: () => ({ body: {} }),
  },
  { route: `POST ${IN}/top-ups/:payment_id/cancel`, may: PAYERS },
  { route: `GET ${IN}/trail/`, may: ['owner'] },

  { route: `GET ${IN}/models/`, may: SEERS },
  {
    route: `GET ${IN}/models/tuning-base`,
    may: KEY_MAKERS,
    given: () => ({ query: 'model=decision-1' }),
  },
  { route: `GET ${IN}/own-models/`, may: SEERS },
  {
    route: `POST ${IN}/own-models/`,
    about: 'where no credit was paid',
    may: MANAGERS,
    status: 402,
    given: () => ({ query: 'name=support-1', body: {} }),
  },
  {
    route: `DELETE ${IN}/own-models/`,
    about: 'of a model that is not their own',
    may: MANAGERS,
    status: 404,
    given: () => ({ body: model }),
  },
  { route: 'GET /operator/organizations/', may: OPERATORS },
  { route: `GET /operator${IN}`, may: OPERATORS },
  { route: `GET /operator${IN}/trail`, may: OPERATORS },
  {
    route: `POST /operator${IN}/credit`,
    may: OPERATORS,
    given: () => ({ body: { entry_id: newEntryId(), amount_micros: 5_000_000, is_forced: false } }),
  },
  {
    route: `POST /operator${IN}/refund`,
    may: OPERATORS,
    given: () => ({ body: { entry_id: newEntryId(), amount_micros: 1_000_000 } }),
  },
  { route: `POST /operator${IN}/payments/:payment_id/confirm`, may: OPERATORS },
  { route: `POST /operator${IN}/payments/:payment_id/cancel`, may: OPERATORS },
  { route: `PATCH /operator${IN}/limits`, may: OPERATORS, given: () => ({ body: { minimum_tier: 1 } }) },
  {
    route: `POST /operator${IN}/owner`,
    may: OPERATORS,
    given: () => ({ body: { email: 'the-first-owner@example.com' } }),
  },
  {
    route: `POST /operator${IN}/suspension`,
    may: OPERATORS,
    given: () => ({ body: { is_suspended: false } }),
  },
  { route: 'GET /operator/models/', may: OPERATORS },
  {
    route: 'POST /operator/models/price',
    may: OPERATORS,
    given: () => ({ body: { ...model, price_micros: 100_000 } }),
  },
  { route: 'POST /operator/models/close', may: OPERATORS, given: () => ({ body: model }) },
  { route: 'POST /operator/models/open', may: OPERATORS, given: () => ({ body: model }) },
  {
    route: 'POST /operator/models/reload',
    about: 'of an unknown model',
    may: OPERATORS,
    status: 404,
    given: () => ({ body: { id: 'none' } }),
  },
  { route: 'GET /operator/live', may: OPERATORS },
  { route: 'GET /operator/audit', may: OPERATORS },
  {
    route: 'POST /operator/audit',
    may: OPERATORS,
    after: async () => {
      const { audits } = made.service.service.services;
      while (audits.status(OPERATOR).is_running) await new Promise(setImmediate);
    },
  },
  { route: 'GET /operator/inbox', may: OPERATORS },
  { route: 'GET /operator/problems', may: OPERATORS },
  { route: 'GET /operator/trail', may: OPERATORS },
];

let made: TestConsole;
const people = new Map<Caller, Person>();
/** The organization of the five roles. */
let acme: Place;
/** One that none of the callers is a member of. */
let other: Place;
/** One into which everybody is invited. */
let elsewhere: string;
/** Ids that look like ours, and that nothing has. */
const nothing: Place = {
  organization_id: 'org_000000000000000000000000',
  project_id: 'proj_000000000000000000000000',
  key_id: 'key_000000000000000000000000',
  user_id: 'user_000000000000000000000000',
  invitation_id: 'inv_000000000000000000000000',
  payment_id: 'pay_000000000000000000000000',
  session_id: 'ses_000000000000000000000000',
  passkey_id: 'passkey_000000000000000000000000',
};

beforeAll(async () => {
  // Hashing is tested with sign-in; here it would take most of the time.
  const passwords = {
    hash: (password: string) => Promise.resolve(`hash of ${password}`),
    verify: ({ hash, password }: { hash: string; password: string }) =>
      Promise.resolve(hash === `hash of ${password}`),
  };
  made = await startTestConsole({}, { passwords });
  for (const caller of SIGNED_IN) {
    const is_operator = caller === 'operator';
    people.set(caller, await addPerson(made, { email: `${caller}@example.com`, is_operator }));
  }
  acme = await newPlace('Acme', personOf('owner').user_id);
  for (const role of ROLES.slice(1)) {
    const { user_id } = personOf(role);
    await addMember(accounts(), OPERATOR, { organization_id: acme.organization_id, user_id, role });
  }
  const { user_id } = await addPerson(made, { email: 'others@example.com' });
  other = await newPlace('Other', user_id);
  elsewhere = (await newPlace('Elsewhere', user_id)).organization_id;
});
afterAll(() => made.close());
// So that every row has whole budgets of attempts.
beforeEach(() => made.service.clock.advance(20 * 60_000));

const accounts = () => made.service.accounts;
let count = 0;
const freshName = () => `Number ${++count}`;
const freshEmail = () => `person${++count}@example.com`;

function personOf(caller: Caller): Person {
  const person = people.get(caller);
  if (person === undefined) throw new Error(`${caller} is not signed in`);
  return person;
}

/** An organization with one thing of each kind, all made by the operator. */
async function newPlace(name: string, owner_user_id: string): Promise<Place> {
  const created = await createOrganization(accounts(), OPERATOR, { name, owner_user_id });
  const project_id = created.default_project_id;
  const key = await createKey(accounts(), OPERATOR, { project_id, name: 'First' });
  const payment_id = await pendingTopUp(created.id);
  const place = { ...nothing, organization_id: created.id, project_id, key_id: key.id, payment_id };
  const { id: invitation_id } = await invite(created.id, 'reader');
  const [session] = await made.service.execute(`SELECT id FROM sessions WHERE user_id = '${owner_user_id}'`);
  const passkey_id = `passkey_of_${created.id}`;
  await addPasskeyRow(made.service.execute, owner_user_id, passkey_id);
  const session_id = String(session?.id ?? '');
  return { ...place, invitation_id, user_id: owner_user_id, session_id, passkey_id };
}

function invite(organization_id: string, role: Role, email = freshEmail()): Promise<SentInvitation> {
  return sendInvitation(accounts(), OPERATOR, { organization_id, email, role });
}

async function pendingTopUp(organization_id: string): Promise<string> {
  const given = { organization_id, amount_micros: 5_000_000 };
  return (await startTopUp(accounts(), OPERATOR, manualProvider, given)).payment_id;
}

/** Cancels those that refused requests have left, because an organization has few at once. */
async function onlyPendingTopUp(organization_id: string): Promise<string> {
  for (const { id } of await accounts().store.payments.pendingPayments(organization_id)) {
    await cancelTopUp(accounts(), OPERATOR, { organization_id, payment_id: id });
  }
  return await pendingTopUp(organization_id);
}

/** Acme with things of its own for the parameters of the path, so that one request does not spoil the next. */
async function freshPlace({ route, named_role = 'reader', made_by }: Row, caller: Caller): Promise<Place> {
  const { organization_id } = acme;
  const place: { -readonly [Part in keyof Place]: Place[Part] } = {
    ...acme,
    session_id: other.session_id,
    passkey_id: other.passkey_id,
  };
  if (route.includes(':project_id')) {
    place.project_id = (await createProject(accounts(), OPERATOR, { organization_id, name: freshName() })).id;
  }
  if (route.includes(':key_id')) {
    const user_id = made_by === 'caller' ? (people.get(caller)?.user_id ?? null) : null;
    const project_id = acme.project_id;
    const key = await createKey(accounts(), { kind: 'operator', user_id }, { project_id, name: 'Named' });
    place.key_id = key.id;
  }
  if (route.includes(':user_id')) {
    const { user } = await signUp(accounts(), { email: freshEmail(), name: 'Named' });
    await addMember(accounts(), OPERATOR, { organization_id, user_id: user.id, role: named_role });
    place.user_id = user.id;
  }
  if (route.includes(':payment_id')) place.payment_id = await onlyPendingTopUp(organization_id);
  if (route.includes(':invitation_id')) {
    place.invitation_id = (await invite(organization_id, named_role)).id;
  }
  return place;
}

/** Sends the request of a row about a place. */
async function send(row: Row, at: Place, caller: Caller): Promise<Response> {
  const [method = '', pattern = ''] = row.route.split(' ');
  const path = pattern.replace(/:(\w+)/g, (_, name: string) => idIn(at, name));
  const { query, body } = (await row.given?.(at, caller)) ?? {};
  const url = `${API_PREFIX}${path}${query === undefined ? '' : `?${query}`}`;
  const person = people.get(caller);
  if (person !== undefined) {
    const asking = row.ends_session === true ? await signIn(made, person) : person;
    return await asking.ask(url, { method, ...(body === undefined ? {} : { body }) });
  }
  return await made.service.fetch(url, {
    method,
    headers: { origin: made.service.server.address, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

function idIn(at: Place, name: string): string {
  const found = Object.entries(at).find(([part]) => part === name)?.[1];
  if (found === undefined) throw new Error(`add ":${name}" to Place`);
  return found;
}

/** Returns true if a route is for members. Routes of operators do not exist for others. */
const isOfOrganization = (route: string) => route.includes(` ${IN}`);

function expectedStatus({ may, status = 200, route }: Row, caller: Caller): number {
  if (may.includes(caller)) return status;
  if (caller === 'nobody') return 401;
  const is_member = ROLES.some((role) => role === caller);
  return is_member && isOfOrganization(route) ? 403 : 404;
}

/**
 * Every row of every table, without expired links: those to nobody have expired when they are made, after the
 * answer, and are deleted with the next one.
 */
async function dump(): Promise<string> {
  const everything = await made.service.everything();
  const Valid = Type.Object({ expires_at_ms: Type.Integer({ minimum: made.service.clock.now_ms() + 1 }) });
  const { verifications = [] } = everything;
  return JSON.stringify({
    ...everything,
    verifications: verifications.filter((row) => Value.Check(Valid, row)),
  });
}

/** Status and error, without the request's id. */
async function refusalOf(response: Response): Promise<unknown> {
  const { error } = Value.Parse(ErrorResponseSchema, await response.json());
  return { status: response.status, error };
}

const nameOf = ({ route, about }: Row) => (about === undefined ? route : `${route}, ${about}`);
const TABLE = ROWS.map((row) => [nameOf(row), row] as const);

test('every route of the API has a row, and every row is of a route', () => {
  const routes = made.service.service.services.console?.routes ?? [];
  const known = routes.map(({ method, path }) => `${method} ${path.replace(API_PREFIX, '')}`);
  expect([...new Set(ROWS.map(({ route }) => route))].sort()).toEqual([...new Set(known)].sort());
});

describe('who may ask what', () => {
  test.each(TABLE)('%s', async (_, row) => {
    const reads = row.route.startsWith('GET ');
    const statuses: Record<string, number> = {};
    for (const caller of CALLERS) {
      const at = await freshPlace(row, caller);
      const { given } = row;
      const prepared = await given?.(at, caller);
      const before = reads || expectedStatus(row, caller) >= 400 ? await dump() : null;
      const fixed = prepared === undefined ? row : { ...row, given: () => prepared };
      const response = await send(fixed, at, caller);
      const text = await response.text();
      expect(text).not.toBe('');
      if (caller === 'nobody' && !row.may.includes(caller)) expect(text).toContain('"not_signed_in"');
      await row.after?.();
      statuses[caller] = response.status;
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      if (before !== null && (response.status >= 400 || reads)) expect(await dump()).toBe(before);
    }
    const expected = CALLERS.map((caller) => [caller, expectedStatus(row, caller)]);
    expect(statuses).toEqual(Object.fromEntries(expected));
  });
});

describe('what belongs to another organization is as what does not exist', () => {
  test.each(TABLE.filter(([, { route }]) => isOfOrganization(route)))(
    '%s: the organization',
    async (_, row) => {
      const before = await dump();
      const known = await refusalOf(await send(row, other, 'owner'));
      expect(known).toMatchObject({ status: 404, error: { code: 'not_found' } });
      expect(known).toEqual(await refusalOf(await send(row, nothing, 'owner')));
      // Things of one's own do not open it either.
      expect(
        await refusalOf(await send(row, { ...acme, organization_id: other.organization_id }, 'owner')),
      ).toEqual(
        await refusalOf(await send(row, { ...acme, organization_id: nothing.organization_id }, 'owner')),
      );
      expect(await dump()).toBe(before);
    },
  );

  const hasThings = ({ route, given }: Row) =>
    (/:(?!organization_id)\w+/.test(route) && !route.includes(' /operator/')) ||
    given === filtered ||
    route === `POST ${IN}/keys/`;
  test.each(TABLE.filter(([, row]) => hasThings(row)))('%s: what is in it', async (_, row) => {
    const before = await dump();
    const { organization_id } = acme;
    const known = await refusalOf(await send(row, { ...other, organization_id }, 'owner'));
    expect(known).toMatchObject({ status: 404, error: { code: 'not_found' } });
    expect(known).toEqual(await refusalOf(await send(row, { ...nothing, organization_id }, 'owner')));
    expect(await dump()).toBe(before);
  });
});

describe('what can be no id is as what does not exist', () => {
  // PostgreSQL takes no NUL in a text.
  const odd: Place = {
    organization_id: 'org\0x',
    project_id: 'proj\0x',
    key_id: 'key\0x',
    user_id: 'user\0x',
    invitation_id: 'inv\0x',
    payment_id: 'pay\0x',
    session_id: 'ses\0x',
    passkey_id: 'passkey\0x',
  };
  test.each(TABLE.filter(([, { route }]) => route.includes(':')))('%s', async (_, row) => {
    const caller = row.may === OPERATORS ? 'operator' : 'owner';
    const { organization_id } = acme;
    const has_things = /:(?!organization_id)\w+/.test(row.route);
    const before = await dump();
    for (const of_whom of has_things ? [{}, { organization_id }] : [{}]) {
      const refused = await refusalOf(await send(row, { ...odd, ...of_whom }, caller));
      expect(refused).toMatchObject({ status: 404 });
      expect(refused).toEqual(await refusalOf(await send(row, { ...nothing, ...of_whom }, caller)));
    }
    expect(await dump()).toBe(before);
  });
});

describe('a change is taken of the own pages only', () => {
  const CHANGES = TABLE.filter(([, { route }]) => !route.startsWith('GET '));
  test.each(CHANGES)('%s', async (_, row) => {
    const at = await freshPlace(row, 'owner');
    const { body } = (await row.given?.(at, 'nobody')) ?? {};
    const [method = '', pattern = ''] = row.route.split(' ');
    const path = API_PREFIX + pattern.replace(/:(\w+)/g, (_, name: string) => idIn(at, name));
    const own = made.service.server.address;
    const { cookie, csrf_token } = personOf('owner');
    const whole = { cookie, origin: own, 'x-csrf-token': csrf_token, 'content-type': 'application/json' };
    const before = await dump();
    const refused = async (headers: Record<string, string>, changed: Record<string, string | null> = {}) => {
      const sent = Object.entries({ ...headers, ...changed }).filter(([, value]) => value !== null);
      const asked = { method, headers: Object.fromEntries(sent.map(([name, value]) => [name, value ?? ''])) };
      const response = await made.service.fetch(path, { ...asked, body: JSON.stringify(body ?? {}) });
      const { error } = Value.Parse(ErrorResponseSchema, await response.json());
      return `${response.status} ${error.code}`;
    };
    expect({
      none: await refused(whole, { origin: null }),
      opaque: await refused(whole, { origin: 'null' }),
      other: await refused(whole, { origin: 'https://evil.example' }),
      other_port: await refused(whole, {
        origin: own.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)),
      }),
      other_scheme: await refused(whole, { origin: own.replace('http:', 'ftp:') }),
      longer: await refused(whole, { origin: `${own}.evil.example` }),
      same_site: await refused(whole, { 'sec-fetch-site': 'same-site' }),
      cross_site: await refused(whole, { 'sec-fetch-site': 'cross-site' }),
      text: await refused(whole, { 'content-type': 'text/plain' }),
      form: await refused(whole, { 'content-type': 'application/x-www-form-urlencoded' }),
    }).toEqual({
      none: '403 wrong_origin',
      opaque: '403 wrong_origin',
      other: '403 wrong_origin',
      other_port: '403 wrong_origin',
      other_scheme: '403 wrong_origin',
      longer: '403 wrong_origin',
      same_site: '403 wrong_origin',
      cross_site: '403 wrong_origin',
      text: '422 unsupported_media_type',
      form: '422 unsupported_media_type',
    });
    if (!row.may.includes('nobody')) {
      expect(await refused(whole, { 'x-csrf-token': null })).toBe('403 invalid_csrf_token');
      const another = personOf('admin').csrf_token;
      expect(await refused(whole, { 'x-csrf-token': another })).toBe('403 invalid_csrf_token');
    }
    expect(await dump()).toBe(before);
  });

  test('no header makes a change of another method', async () => {
    const at = await freshPlace({ route: `DELETE ${IN}/keys/:key_id`, may: [] }, 'owner');
    const { cookie } = personOf('owner');
    const path = `${API_PREFIX}/organizations/${at.organization_id}/keys/${at.key_id}`;
    const before = await dump();
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PROPFIND']) {
      const headers = { cookie, 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' };
      const response = await made.service.fetch(`${path}?_method=DELETE`, { method, headers });
      expect(response.status).toBe(['GET', 'HEAD'].includes(method) ? 404 : 403);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
    expect(await dump()).toBe(before);
  });
});
