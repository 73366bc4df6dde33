import { OPERATOR } from '../../src/access/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { addPerson, startTestConsole } from '../console/people.ts';
import { dismissedEngine } from './dismissed-engine.ts';
import { longestBlock_ms } from './event-loop.ts';
import { addAccount } from './service.ts';

/** The cost of a request to the service. */
export interface Cost {
  readonly status: number;
  /** The longest time for which the event loop was blocked, in milliseconds of its thread's CPU. */
  readonly block_ms: number;
}

/** A request as a page of the console sends it, or with an API key; a body makes it a POST. */
export interface OtherRequest {
  readonly path: string;
  readonly sender: 'stranger' | 'owner' | 'key';
  readonly body?: string;
  readonly cookie?: string;
}

/** A service with all that its event loop does for a request, and without the model. */
export interface HostileService {
  /** The cost of a request for a decision. */
  cost(body: Uint8Array<ArrayBuffer>, mode: 'fast' | 'consistent'): Promise<Cost>;
  /** The cost of any other request of the same account, a minute after the last one. */
  costOf(request: OtherRequest): Promise<Cost>;
  /** The path of the own models of the account's organization. */
  readonly own_models_path: string;
  close(): Promise<void>;
}

/** Starts one, with an account that may send as much as it likes. */
export async function startHostileService(): Promise<HostileService> {
  const made = await startTestConsole({ embedded: true, cold: false, openEngine: dismissedEngine });
  const { service } = made;
  const { organization_id, key } = await addAccount(service, { credit_dollars: 10_000, tier: 5 });
  await setTierSettings(service.accounts, OPERATOR, organization_id, {
    requests_per_minute: 1e9,
    tokens_per_minute: 1e12,
  });
  const owner = await addPerson(made, { email: 'owner@example.com' });
  await addMember(service.accounts, OPERATOR, { organization_id, user_id: owner.user_id, role: 'owner' });
  const { host, origin } = new URL(service.server.address);
  const page = { host, origin, 'content-type': 'application/json' };
  const senders = {
    stranger: page,
    owner: { ...page, cookie: owner.cookie, 'x-csrf-token': owner.csrf_token },
    key: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
  };
  const costOf = async (path: string, init: RequestInit): Promise<Cost> => {
    let status = 0;
    const block_ms = await longestBlock_ms(async () => {
      const response = await service.service.handle(new Request(`${origin}${path}`, init));
      await response.arrayBuffer();
      status = response.status;
    });
    return { status, block_ms };
  };
  return {
    cost: (body, mode) =>
      costOf(`/v1/decisions?mode=${mode}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body,
      }),
    costOf({ path, sender, body, cookie }) {
      // So that no budget of a minute is spent.
      service.clock.advance(60_000);
      const headers = { ...senders[sender], ...(cookie === undefined ? {} : { cookie }) };
      return costOf(path, body === undefined ? { headers } : { method: 'POST', headers, body });
    },
    own_models_path: `/console/api/organizations/${organization_id}/own-models/`,
    close: () => made.close(),
  };
}
