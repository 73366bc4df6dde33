import { expect } from 'bun:test';
import type { Experimental_DecisionModel } from 'ai';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { takeTableAway } from '../support/faults.ts';
import { ask } from '../support/requests.ts';
import { addAccount, type TestAccount, type TestService } from '../support/service.ts';

/** A `fetch` for a client that can be given one, with the statuses that the client saw. */
export interface WatchedFetch {
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  readonly statuses: number[];
}

/** The global `fetch`, which notes each status and calls `after` with it. */
export function watchedFetch(after: (status: number) => void = () => {}): WatchedFetch {
  const statuses: number[] = [];
  return {
    statuses,
    async fetch(input, init) {
      const response = await fetch(input, init);
      statuses.push(response.status);
      after(response.status);
      return response;
    },
  };
}

/**
 * An account whose next request is refused with a 429 with `Retry-After: 1`. The `fetch` moves the service's clock by
 * that second once the client has been refused.
 */
export async function rateLimited(
  service: TestService,
): Promise<{ account: TestAccount; watched: WatchedFetch }> {
  const account = await addAccount(service);
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, { requests_per_minute: 1 });
  expect((await ask(service, account.key)).status).toBe(200);
  service.clock.advance(59_000);
  const watched = watchedFetch((status) => {
    if (status === 429) service.clock.advance(1_000);
  });
  return { account, watched };
}

/** A catalog that cannot be read until a client has been refused with 503, and a `fetch` that sees to that. */
export function withoutCatalog(service: TestService): WatchedFetch {
  const putBack = takeTableAway(service.directory, 'models');
  return watchedFetch((status) => {
    if (status === 503) putBack();
  });
}

/** A provider's model as the AI SDK's own. Both packages declare its type, and disagree on optional properties only. */
export function decisionModelOf(model: unknown): Experimental_DecisionModel {
  if (!isDecisionModel(model)) throw new TypeError('the provider made no decision model');
  return model;
}

function isDecisionModel(value: unknown): value is Experimental_DecisionModel {
  return typeof value === 'object' && value !== null && 'doEvaluate' in value;
}
