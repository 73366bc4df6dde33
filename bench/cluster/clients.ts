import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { CLIENT_TIMEOUT_MS } from '../../src/time/client-timeout.ts';
import { SMALL_REQUEST } from '../../test/support/requests.ts';

/** The delay before a client retries after a refusal or a cut. */
const REFUSED_WAIT_MS = 200;

/** The result of one request. Times are those of `performance.now()`. */
export interface Seen {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly organization: number;
  /** 200, the code of the refusal, or an error of the balancer. */
  readonly outcome: string;
  /** Null if no node answered. */
  readonly request_id: string | null;
  /** The cost in a 200. */
  readonly cost_micros: number | null;
}

const ANSWER = Type.Object({ usage: Type.Object({ cost_usd: Type.Number() }) });
const ERROR = Type.Object({ error: Type.Object({ code: Type.String() }) });
const BODY = JSON.stringify(SMALL_REQUEST);

/** Clients of the organizations, which send one request after the other until they are stopped. */
export class Clients {
  readonly seen: Seen[] = [];
  /** The pause of a client after a 200, in milliseconds. At 0, the next request follows at once. */
  rest_ms = 0;
  readonly #running: Promise<unknown>;
  #is_over = false;

  constructor(
    private readonly address: string,
    keys: readonly string[],
    clients: number,
  ) {
    this.#running = Promise.all(
      Array.from({ length: clients }, (_, client) => {
        const organization = client % keys.length;
        return this.#run(organization, keys[organization] ?? '');
      }),
    );
  }

  /** Stops the clients. Resolves after the last answer. */
  async stop(): Promise<void> {
    this.#is_over = true;
    await this.#running;
  }

  async #run(organization: number, key: string): Promise<void> {
    while (!this.#is_over) {
      const from_ms = performance.now();
      const answer = await this.#ask(key);
      this.seen.push({ from_ms, to_ms: performance.now(), organization, ...answer });
      const wait_ms = answer.outcome === '200' ? this.rest_ms : REFUSED_WAIT_MS;
      if (wait_ms > 0) await Bun.sleep(wait_ms);
    }
  }

  async #ask(key: string): Promise<Pick<Seen, 'outcome' | 'request_id' | 'cost_micros'>> {
    let request_id: string | null = null;
    try {
      const response = await fetch(`${this.address}/v1/decisions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: BODY,
        keepalive: false,
        signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
      });
      request_id = response.headers.get('x-request-id');
      const text = await response.text();
      if (request_id === null)
        return {
          outcome: BALANCER_OUTCOMES[response.status] ?? `${response.status}`,
          request_id,
          cost_micros: null,
        };
      const body: unknown = JSON.parse(text);
      if (response.status === 200 && Value.Check(ANSWER, body)) {
        const cost_micros = Math.round(body.usage.cost_usd * MICROS_PER_DOLLAR);
        return { outcome: '200', request_id, cost_micros };
      }
      const outcome = Value.Check(ERROR, body)
        ? `${response.status} ${body.error.code}`
        : `${response.status}`;
      return { outcome, request_id, cost_micros: null };
    } catch (error) {
      const is_timeout = error instanceof Error && error.name === 'TimeoutError';
      return { outcome: is_timeout ? NO_ANSWER : CUT, request_id, cost_micros: null };
    }
  }
}

/** The connection to the node broke before its answer. */
export const CUT = '502 cut';
/** The balancer has no node. */
export const NO_NODE = '503 no node';
/** A client waited for the contract's timeout, which must not happen. */
export const NO_ANSWER = `no answer in ${CLIENT_TIMEOUT_MS / 1_000} s`;

const BALANCER_OUTCOMES: Readonly<Record<number, string>> = { 502: CUT, 503: NO_NODE };
