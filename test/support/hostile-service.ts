import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { dismissedEngine } from './dismissed-engine.ts';
import { longestBlock_ms } from './event-loop.ts';
import { addAccount, embeddedEngine, startTestService } from './service.ts';

/** The cost of a body to the service. */
export interface Cost {
  readonly status: number;
  /** The longest time for which the event loop was blocked, in milliseconds of its thread's CPU. */
  readonly block_ms: number;
}

/** A service with all that its event loop does for a request, and without the model. */
export interface HostileService {
  cost(body: Uint8Array<ArrayBuffer>, mode: 'fast' | 'consistent'): Promise<Cost>;
  close(): Promise<void>;
}

/** Starts one with an account that may send as much as it likes. */
export async function startHostileService(): Promise<HostileService> {
  const engine = dismissedEngine(await embeddedEngine());
  const service = await startTestService({ openEngine: () => Promise.resolve(engine) });
  const { organization_id, key } = await addAccount(service, { credit_dollars: 10_000, tier: 5 });
  await setTierSettings(service.accounts, OPERATOR, organization_id, {
    requests_per_minute: 1e9,
    tokens_per_minute: 1e12,
  });
  return {
    async cost(body, mode) {
      let status = 0;
      const block_ms = await longestBlock_ms(async () => {
        const response = await service.service.handle(
          new Request(`http://localhost/v1/decisions?mode=${mode}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}` },
            body,
          }),
        );
        await response.arrayBuffer();
        status = response.status;
      });
      return { status, block_ms };
    },
    close: () => service.close(),
  };
}
