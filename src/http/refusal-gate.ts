import type { Caller, KeyDirectory } from '../accounts/key-directory.ts';
import { extractKey, MissingKey } from '../accounts/key-format.ts';
import type { AskedKey } from '../decisions/call.ts';
import { Refusal } from '../errors/errors.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import {
  ADDRESS_REFUSALS_PER_MINUTE,
  keyRefusalsPerMinute,
  type RefusalBudgets,
} from '../limits/refusal-budgets.ts';
import type { Problems } from '../problems/problems.ts';
import type { Clock } from '../time/clock.ts';
import type { RequestContext } from './context.ts';
import { requestRateHeaders } from './responses.ts';
import type { Refused } from './route.ts';

/** The key of a request's headers. */
type HeaderKey = AskedKey & { readonly key: string | MissingKey };

/** The refusal of a request that is not processed. */
type OverBudget = Refused<'rate_limit_exceeded'>;

/** The parts that bound requests which nobody pays for. */
export interface RefusalGateServices {
  readonly keys: Pick<KeyDirectory, 'authenticate' | 'mayExist'>;
  readonly limiter: RateWindows;
  /** The budgets of refused requests, which cost nothing. */
  readonly refusals: RefusalBudgets;
  readonly clock: Clock;
  readonly problems: Problems;
}

/**
 * Returns the key of a request, looked up for all later steps. Returns the 429 `rate_limit_exceeded` where its
 * address or key has spent its budget of refusals. A valid key passes whatever else its address sends. Against the
 * address count only missing, malformed and unknown keys, and keys of suspended organizations. Reads nothing
 * of the body.
 */
export async function keyWithinBudget(
  services: RefusalGateServices,
  { headers }: Pick<Request, 'headers'>,
  context: RequestContext,
): Promise<OverBudget | HeaderKey> {
  const key = extractKey(headers);
  const now_ms = services.clock.monotonic_ms();
  const address_wait_s = services.refusals.addressWait_s(context.client_address, now_ms);
  if (key instanceof MissingKey || (address_wait_s > 0 && !(await mayExist(services, key, context)))) {
    return address_wait_s === 0 ? { key } : overAddress(services, context, address_wait_s);
  }
  let caller: Caller | null;
  try {
    caller = await services.keys.authenticate(key);
  } catch {
    // Nothing is lost: the next step looks the key up again, and reports the failure.
    return { key };
  }
  if (caller === null || caller.is_suspended === true) {
    return address_wait_s === 0 ? { key, caller } : overAddress(services, context, address_wait_s);
  }
  const key_wait_s = services.refusals.keyWait_s(caller.key_id, now_ms);
  return key_wait_s === 0 ? { key, caller } : overKey(services, context, caller, key_wait_s);
}

/** Returns true if the key may exist, or cannot be looked up; the route then answers with that failure. */
function mayExist(
  { keys, problems }: RefusalGateServices,
  key: string,
  { request_id }: RequestContext,
): Promise<boolean> {
  return keys.mayExist(key, (error) =>
    problems.report({ request_id, step: 'authenticate', code: null, error }),
  );
}

/** Returns true if the address of a request has spent its budget of refusals. */
export function hasSpentAddressBudget(
  services: Pick<RefusalGateServices, 'refusals' | 'clock'>,
  context: RequestContext,
): boolean {
  return addressWait_s(services, context) > 0;
}

function addressWait_s(
  { refusals, clock }: Pick<RefusalGateServices, 'refusals' | 'clock'>,
  { client_address }: RequestContext,
): number {
  return refusals.addressWait_s(client_address, clock.monotonic_ms());
}

/** Returns the same 429, or null, for a request without a lookup of a key, such as one to an unknown path. */
export function refusalOverAddressBudget(
  services: Pick<RefusalGateServices, 'refusals' | 'clock'>,
  context: RequestContext,
): OverBudget | null {
  const wait_s = addressWait_s(services, context);
  return wait_s === 0 ? null : overAddress(services, context, wait_s);
}

/** Counts a refusal against the key, or against the address where there is no valid one. */
export function spendRefusal(
  services: Pick<RefusalGateServices, 'refusals' | 'clock'>,
  context: RequestContext,
  refusal: Refusal,
  body_bytes = 0,
): void {
  // Failures by our own fault do not count.
  if (refusal.status >= 500) return;
  const { caller, client_address } = context;
  if (caller === null) {
    services.refusals.spendOfAddress(client_address, services.clock.monotonic_ms());
    return;
  }
  // A client that waits for its rate window repeats its requests, so only the cost of its bodies counts.
  spendUnpaid(services, caller, { refusals: refusal.status === 429 ? 0 : 1, body_bytes });
}

/** Counts unpaid work against a key: a refusal, or work that is free of charge. */
export function spendUnpaid(
  { refusals, clock }: Pick<RefusalGateServices, 'refusals' | 'clock'>,
  { key_id, limits }: Caller,
  spent: { readonly refusals: 0 | 1; readonly body_bytes: number },
): void {
  refusals.spendOfKey(key_id, limits?.requests_per_minute ?? 0, spent, clock.monotonic_ms());
}

function overAddress(
  services: Pick<RefusalGateServices, 'refusals'>,
  context: RequestContext,
  wait_s: number,
): OverBudget {
  return over(
    services,
    context,
    `Too many requests without a valid API key came from this address: ${ADDRESS_REFUSALS_PER_MINUTE} per minute are answered.`,
    wait_s,
    budgetHeaders(ADDRESS_REFUSALS_PER_MINUTE, wait_s),
  );
}

async function overKey(
  services: RefusalGateServices,
  context: RequestContext,
  caller: Caller,
  wait_s: number,
): Promise<OverBudget> {
  context.caller = caller;
  const { limits } = caller;
  const per_minute = keyRefusalsPerMinute(limits?.requests_per_minute ?? 0);
  return over(
    services,
    context,
    `Too many requests of this API key were refused: ${per_minute} refusals per minute are answered, fewer with large bodies.`,
    wait_s,
    (await windowHeaders(services, context, caller)) ?? budgetHeaders(per_minute, wait_s),
  );
}

/**
 * Returns the headers of the organization's own windows; null where it has none, or they cannot be reached.
 */
async function windowHeaders(
  { limiter, problems }: RefusalGateServices,
  { request_id }: RequestContext,
  { organization_id, limits }: Caller,
): Promise<Record<string, string> | null> {
  if (limits === null) return null;
  try {
    return requestRateHeaders(await limiter.status(organization_id, limits));
  } catch (error) {
    problems.report({ request_id, step: 'rate_windows', code: null, error });
    return null;
  }
}

/**
 * Returns the headers of a 429 (contract: response headers). Without known windows, they have the reached
 * limit.
 */
function budgetHeaders(per_minute: number, wait_s: number): Record<string, string> {
  return requestRateHeaders({ limit_requests: per_minute, remaining_requests: 0, reset_requests_s: wait_s });
}

function over(
  { refusals }: Pick<RefusalGateServices, 'refusals'>,
  context: RequestContext,
  message: string,
  retry_after_s: number,
  headers: Readonly<Record<string, string>>,
): OverBudget {
  context.is_over_budget = true;
  refusals.noteUnanswered();
  return { refusal: new Refusal('rate_limit_exceeded', { message, retry_after_s }), headers };
}
