import { type Caller, SUSPENDED_MESSAGE } from '../accounts/key-directory.ts';
import { MissingKey, whyUnknown } from '../accounts/key-format.ts';
import type { ServedModelEntry } from '../catalog/catalog.ts';
import { Refusal } from '../errors/errors.ts';
import { isJsonObject, type JsonValue, kindOf } from '../json/json-value.ts';
import { reported } from '../problems/problems.ts';
import type { AskedCall, AskedKey, CheckedRequest, KnownCaller } from './call.ts';
import { modelNotFound } from './explained-refusals.ts';
import type { DecisionServices } from './ports.ts';
import type { DecisionRefusal } from './refusal.ts';
import { missingField, modelOf, parseDecisionRequest } from './request.ts';

type CheckingServices = Pick<DecisionServices, 'keys' | 'catalog' | 'clock' | 'problems'>;

/** Returns the caller of a key, looked up once a request, or the refusal of a key that has none. Never rejects. */
export async function callerOf(
  { keys, problems }: Pick<DecisionServices, 'keys' | 'problems'>,
  { key, caller, request_id }: AskedKey & Pick<AskedCall, 'request_id'>,
): Promise<Caller | Refusal<'missing_api_key' | 'invalid_api_key' | 'auth_unavailable'>> {
  if (key instanceof MissingKey) return new Refusal('missing_api_key', { message: key.message });
  try {
    const found = caller === undefined ? await keys.authenticate(key) : caller;
    if (found === null) {
      return new Refusal('invalid_api_key', typeof key === 'string' ? { message: whyUnknown(key) } : {});
    }
    return found.is_suspended === true
      ? new Refusal('invalid_api_key', { message: SUSPENDED_MESSAGE })
      : found;
  } catch (error) {
    return reported(problems, { request_id, step: 'authenticate', code: 'auth_unavailable', error });
  }
}

/** The outcome of the step `key`. */
export interface Authenticated {
  readonly result: KnownCaller | DecisionRefusal;
  /** The caller of a valid key, also where its organization has no access; null without one. */
  readonly caller: Caller | null;
}

/** Runs the step `key`: the key, its project and its organization. Never rejects. */
export async function authenticate(
  services: CheckingServices,
  call: AskedKey & Pick<AskedCall, 'request_id'>,
): Promise<Authenticated> {
  const caller = await callerOf(services, call);
  if (caller instanceof Refusal) return { result: caller, caller: null };
  const { limits } = caller;
  if (limits === null) {
    const message = 'API access starts at Tier 1: top up the credit of the organization.';
    return { result: new Refusal('insufficient_credit', { message }), caller };
  }
  return { result: { ...caller, limits }, caller };
}

/** Does as `authenticate` for a call that has waited since: its key may be revoked, and its limits others. */
export async function authenticateAgain(
  services: CheckingServices,
  { key, request_id }: AskedKey & Pick<AskedCall, 'request_id'>,
): Promise<KnownCaller | DecisionRefusal> {
  return (await authenticate(services, { key, request_id })).result;
}

/** Runs the step `request`: the body, its fields, its model and its questions. Never rejects. */
export async function checkRequest(
  services: CheckingServices,
  call: Pick<AskedCall, 'request_id' | 'default_model' | 'query_mode' | 'readBody'>,
  caller: KnownCaller,
): Promise<CheckedRequest | DecisionRefusal> {
  const body = await call.readBody(caller.organization_id);
  if (body instanceof Refusal) return body;
  if (!isJsonObject(body)) return noObject(body, call.default_model);
  const model_id = modelOf(body, call.default_model);
  if (model_id instanceof Refusal && model_id.code === 'missing_model') return model_id;
  const missing = missingField(body);
  if (missing !== null) return missing;
  if (model_id instanceof Refusal) return model_id;
  const model = await findModel(services, call, model_id, caller.organization_id);
  if (model instanceof Refusal) return model;
  const request = parseDecisionRequest(body, call.query_mode, caller.limits.questions_per_request);
  if (request instanceof Refusal) return request;
  return { model, request };
}

/** Returns the refusal of a JSON value other than an object, which has none of the fields: for the first of them. */
function noObject(value: JsonValue, default_model: string | null): DecisionRefusal {
  const message = `The request body must be a JSON object, and is ${kindOf(value)}.`;
  return default_model === null
    ? new Refusal('missing_model', { message, param: 'model' })
    : new Refusal('missing_state', { message, param: 'state' });
}

async function findModel(
  services: CheckingServices,
  call: Pick<AskedCall, 'request_id'>,
  id: string,
  organization_id: string,
): Promise<ServedModelEntry | DecisionRefusal> {
  try {
    const found = await services.catalog.findLive(id, organization_id);
    if (found === undefined) return modelNotFound(await services.catalog.listLive(organization_id));
    return (await services.catalog.served(found)) ?? new Refusal('wrong_endpoint', { param: 'model' });
  } catch (error) {
    const { request_id } = call;
    return reported(services.problems, { request_id, step: 'catalog', code: 'catalog_unavailable', error });
  }
}
