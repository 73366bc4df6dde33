import { Elysia, ParseError, ValidationError } from 'elysia';
import { AccountError } from '../../access/account-error.ts';
import { CatalogChangeRefused } from '../../catalog/changes.ts';
import { Refusal } from '../../errors/errors.ts';
import { readBytes } from '../../http/body-bytes.ts';
import type { RequestContexts } from '../../http/context.ts';
import { jsonResponse } from '../../http/responses.ts';
import { isJsonArray, isJsonObject, type JsonValue } from '../../json/json-value.ts';
import { JsonError, readJson } from '../../json/read-json.ts';
import { ReadTookTooLong } from '../../usage/fair-reader.ts';
import { SignInError } from '../people/sign-in-error.ts';
import { accountRoutes } from './account.ts';
import { alertRoutes } from './alerts.ts';
import { auditLogRoutes } from './audit-log.ts';
import { batchRoutes } from './batch.ts';
import { billingRoutes } from './billing.ts';
import { invitationRoutes, offeredInvitationRoutes } from './invitations.ts';
import { keyRoutes } from './keys.ts';
import { liveModelRoutes } from './live-models.ts';
import { memberRoutes } from './members.ts';
import { operatorRoutes } from './operator/operator.ts';
import { organizationRoutes } from './organizations.ts';
import { ownModelAddingRoutes, ownModelRoutes } from './own-models.ts';
import { requireOwnPage } from './own-page.ts';
import { passkeyRoutes, passkeySignInRoutes } from './passkeys.ts';
import { playgroundRoutes, playgroundTokenRoutes } from './playground.ts';
import { projectRoutes } from './projects.ts';
import {
  ConsoleRefusal,
  refused,
  refusedByPort,
  refusedByRule,
  refusedBySignIn,
  refusedChange,
  refusedWhileAway,
} from './refusals.ts';
import { secondFactorRoutes } from './second-factor.ts';
import type { ConsoleServices } from './services.ts';
import { sessionRoutes } from './session.ts';
import { usageRoutes } from './usage.ts';

/** The prefix of the console's API. */
export const API_PREFIX = '/console/api';

/**
 * The largest body of a change: several times the longest fields of any, and still parsed in a millisecond.
 */
const BODY_BYTES_MAX = 65_536;

/** More fields than any change has. They become a plain object, which finds names by a hash without a seed. */
const FIELDS_MAX = 32;

/** The console's API, as the pages are compiled against it. */
export type ConsoleApi = ReturnType<typeof consoleApi>;

/**
 * Returns the console's API with every route. Every error has the contract's shape. Changes are accepted only
 * from the console's own pages, and no browser or proxy may cache a response.
 */
export function consoleApi(services: ConsoleServices, contexts: RequestContexts) {
  const { problems, isDatabaseAway } = services;
  const limits = { ...services.body_limits, bytes_max: BODY_BYTES_MAX };
  return (
    new Elysia({ prefix: API_PREFIX, normalize: false, handler: { standardHostname: false } })
      .onRequest(({ request, set }) => {
        set.headers['cache-control'] = 'no-store';
        requireOwnPage(request, services);
      })
      .onError(({ code, error, request }) => {
        const context = contexts.of(request);
        const refusal = isDatabaseAway(error) ? refusedWhileAway() : refusalOf(code, error);
        context.refusal = refusal;
        // The port's refusals are reported where they are decided, and overload is not our own fault.
        const cause = error instanceof ParseError ? error.cause : error;
        const is_told = [ConsoleRefusal, SignInError, ReadTookTooLong].some((told) => cause instanceof told);
        if (refusal.status >= 500 && !is_told) {
          problems.report({ request_id: context.request_id, step: 'http', code: refusal.code, error });
        }
        const { status, type, message, param, retry_after_s } = refusal;
        return jsonResponse(
          context.request_id,
          status,
          { error: { type, code: refusal.code, message, param }, request_id: context.request_id },
          {
            'cache-control': 'no-store',
            ...(retry_after_s === null ? {} : { 'retry-after': String(retry_after_s) }),
          },
        );
      })
      // Their bodies are read as the API reads them; the parser is for the routes that follow.
      .use(playgroundRoutes(services, contexts))
      .use(playgroundTokenRoutes(services, contexts))
      .use(batchRoutes(services, contexts))
      .use(ownModelAddingRoutes(services))
      .onParse(async ({ request }) => {
        // A session does not make the client known, because its owner may have signed up a moment ago.
        const { client_address } = contexts.of(request);
        const bytes = await readBytes(request, { client_address }, limits);
        if (bytes instanceof Refusal) throw refusedBody(bytes);
        return jsonOf(bytes);
      })
      .use(sessionRoutes(services, contexts))
      .use(accountRoutes(services, contexts))
      .use(secondFactorRoutes(services, contexts))
      .use(alertRoutes(services))
      .use(passkeySignInRoutes(services, contexts))
      .use(passkeyRoutes(services, contexts))
      .use(organizationRoutes(services))
      .use(invitationRoutes(services))
      .use(offeredInvitationRoutes(services, contexts))
      .use(auditLogRoutes(services))
      .use(keyRoutes(services))
      .use(memberRoutes(services))
      .use(projectRoutes(services))
      .use(usageRoutes(services))
      .use(billingRoutes(services))
      .use(operatorRoutes(services))
      .use(liveModelRoutes(services))
      .use(ownModelRoutes(services))
  );
}

function refusedBody(refusal: Refusal): ConsoleRefusal {
  const { status, code } = refusal;
  if (code !== 'request_too_large') return refusedByPort(refusal);
  return new ConsoleRefusal(status, code, 'The request body is larger than 64 KB.');
}

function jsonOf(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return undefined;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return withoutDepth(readJson(text, { keeps_outer_numbers: true }));
  } catch (error) {
    if (error instanceof JsonError && error.too_deep) return [];
    throw refusedByPort(new Refusal('invalid_json'));
  }
}

/**
 * Returns a body with an empty array in place of everything below its fields, and of one with too many fields. No field of
 * a body is an object or an array: its schema refuses both. Elysia writes the refused value into a message. That fails for
 * an object with a `toString` of its own.
 */
function withoutDepth(body: JsonValue): unknown {
  if (!isJsonObject(body)) return isJsonArray(body) ? [] : body;
  if (body.names.length > FIELDS_MAX) return [];
  const fields = body.values.map((field) => (isJsonObject(field) || isJsonArray(field) ? [] : field));
  return Object.fromEntries(body.names.map((name, at) => [name, fields[at]]));
}

/** Returns the refusal for anything that a route threw. */
function refusalOf(code: string | number, error: unknown): ConsoleRefusal {
  if (error instanceof ConsoleRefusal) return error;
  // Elysia wraps the parser's errors.
  if (error instanceof ParseError && error.cause instanceof ConsoleRefusal) return error.cause;
  if (error instanceof AccountError) return refusedByRule(error);
  if (error instanceof SignInError) return refusedBySignIn(error);
  if (error instanceof CatalogChangeRefused) return refusedChange(error);
  if (error instanceof ReadTookTooLong) return refused('read_too_long');
  if (code === 'NOT_FOUND') return refusedByPort(new Refusal('not_found'));
  if (error instanceof ValidationError && error.type !== 'response') return invalid(error);
  return refusedByPort(new Refusal('internal_error'));
}

/**
 * Returns the refusal of input that does not match its schema. Names the field and never quotes the input.
 */
function invalid({ type, valueError }: ValidationError): ConsoleRefusal {
  const param = valueError?.path.slice(1).replaceAll('/', '.') ?? '';
  const where = param === '' ? `The ${type} of the request` : `"${param}"`;
  const message = `${where} is not as it must be: ${(valueError?.message ?? 'invalid').toLowerCase()}.`;
  return new ConsoleRefusal(422, 'invalid_request', message, param === '' ? null : param);
}
