import { CLIENT_TIMEOUT_MS } from '../../src/time/client-timeout.ts';
import { field } from '../../test/cli/support.ts';
import { chargedMicros } from './requests.ts';
import type { Served } from './served.ts';

/** The number of organizations with requests at the model at once, which share it. */
const ORGANIZATIONS_AT_MODEL = 6;

/** A client, counted under `kind`. Its project pays. */
export interface Client {
  readonly kind: string;
  readonly key: string | null;
  readonly project_id: string | null;
}

export interface HttpRequest {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: string | undefined;
}

/** The answer to a client. */
export interface Answer {
  readonly status: number;
  /** The error's code; empty for a 200. */
  readonly code: string;
  readonly body: unknown;
  readonly request_id: string;
  readonly sent_ms: number;
  readonly latency_ms: number;
}

/** A charge in a client's answer, with its time. */
export interface Acknowledged {
  readonly cost_micros: number;
  readonly project_id: string | null;
  readonly at_ms: number;
}

/** The longest warm-up of a model after a start, on a busy machine. */
const WARMING_MS = 60_000;
const WRONG_KEPT = 30;
const QUEUE_FULL = 'Too many requests are waiting for the model.';

/** All observations of the clients, and the complaints. */
export class Observed {
  readonly acknowledged = new Map<string, Acknowledged>();
  /** The number of requests without a seen answer, by project. Only they can have an unseen charge. */
  readonly unseen = new Map<string | null, number>();
  readonly counts = new Map<string, Map<string, number>>();
  /** The times and latencies of working clients' answers. */
  readonly waits: { readonly at_ms: number; readonly latency_ms: number }[] = [];
  /** The number of requests beyond the clients' timeout, by kind, answered or not. */
  readonly late = new Map<string, number>();
  readonly #wrong: string[] = [];
  #wrong_not_kept = 0;
  #huge_patience_ms = Number.POSITIVE_INFINITY;

  constructor(private readonly served: Served) {}

  /** Records a complaint, and prints it at once. */
  complain(sentence: string): void {
    if (this.#wrong.length === WRONG_KEPT) {
      this.#wrong_not_kept += 1;
      return;
    }
    this.#wrong.push(sentence);
    process.stderr.write(`\n${sentence}\n`);
  }

  /** Returns the complaints, in sentences. */
  complaints(): readonly string[] {
    const more = this.#wrong_not_kept;
    return more === 0 ? this.#wrong : [...this.#wrong, `${more} more sentences of this kind.`];
  }

  /**
   * Sets the latency of the largest request alone. At saturation its answer may take longer than a client's timeout. It
   * may wait as long as clients do, and then gets its share of the model.
   */
  setHugeLatency(alone_ms: number): void {
    this.#huge_patience_ms = CLIENT_TIMEOUT_MS + ORGANIZATIONS_AT_MODEL * alone_ms;
  }

  count(kind: string, outcome: string): void {
    const of_kind = this.counts.get(kind) ?? new Map<string, number>();
    this.counts.set(kind, of_kind.set(outcome, (of_kind.get(outcome) ?? 0) + 1));
  }

  /** Returns the count of an outcome, of all clients or of a kind. */
  total(outcome: string, kind?: string): number {
    const kinds = kind === undefined ? [...this.counts.values()] : [this.counts.get(kind)];
    return kinds.reduce((sum, of_kind) => sum + (of_kind?.get(outcome) ?? 0), 0);
  }

  /**
   * Sends a request and records the answer. Resolves with null without a whole answer: the client has left, or the
   * service was down and is up again. Anything else is a complaint.
   */
  async ask(client: Client, request: HttpRequest, leaves?: AbortSignal): Promise<Answer | null> {
    const sent_ms = Date.now();
    const patience = this.#patience(client);
    try {
      const response = await fetch(this.served.address + request.path, {
        method: request.method ?? 'POST',
        headers: {
          'content-type': 'application/json',
          ...(client.key === null ? {} : { authorization: `Bearer ${client.key}` }),
        },
        signal: leaves === undefined ? patience : AbortSignal.any([patience, leaves]),
        ...(request.body === undefined ? {} : { body: request.body }),
      });
      const body: unknown = await response.json();
      return this.#answered(client, response, body, sent_ms);
    } catch (error) {
      this.#unanswered(client, sent_ms, error, leaves?.aborted === true);
      await this.served.up();
      return null;
    }
  }

  /** Returns the signal of the client's timeout. The huge client has none until its latency alone is known. */
  #patience({ kind }: Client): AbortSignal {
    if (kind !== 'huge') return AbortSignal.timeout(CLIENT_TIMEOUT_MS);
    return Number.isFinite(this.#huge_patience_ms)
      ? AbortSignal.timeout(Math.ceil(this.#huge_patience_ms))
      : new AbortController().signal;
  }

  #waited({ kind }: Client, latency_ms: number): void {
    if (latency_ms >= CLIENT_TIMEOUT_MS) this.late.set(kind, (this.late.get(kind) ?? 0) + 1);
  }

  #answered(client: Client, response: Response, body: unknown, sent_ms: number): Answer {
    const { status, headers } = response;
    const at_ms = Date.now();
    this.#waited(client, at_ms - sent_ms);
    const error = field(body, 'error');
    const code = status === 200 ? '' : String(field(error, 'code'));
    const request_id = headers.get('x-request-id') ?? '';
    this.count(client.kind, `${status} ${code}`.trim());
    if (!request_id.startsWith('req_')) this.complain(`A ${status} had no request id.`);
    if (status === 200) {
      const cost_micros = chargedMicros(body);
      if (cost_micros !== null)
        this.acknowledged.set(request_id, { cost_micros, project_id: client.project_id, at_ms });
    } else if (field(body, 'request_id') !== request_id) {
      this.complain(`A ${status} has the request id ${request_id} in its header, and not in its body.`);
    }
    if (status >= 500 && !this.#isIntended(code, String(field(error, 'message')), sent_ms, at_ms))
      this.complain(`${client.kind}: ${status} ${code} for ${request_id}: ${field(error, 'message')}`);
    return { status, code, body, request_id, sent_ms, latency_ms: at_ms - sent_ms };
  }

  #unanswered(client: Client, sent_ms: number, error: unknown, has_left: boolean): void {
    const { kind, project_id } = client;
    this.#waited(client, Date.now() - sent_ms);
    this.unseen.set(project_id, (this.unseen.get(project_id) ?? 0) + 1);
    if (has_left) {
      this.count(kind, 'left');
    } else if (this.served.wasDown(sent_ms, Date.now())) {
      this.count(kind, 'cut by a kill');
    } else {
      this.count(kind, 'no answer');
      const reason = error instanceof Error ? `${error.name} ${error.message}` : String(error);
      this.complain(`${kind}: no answer after ${Date.now() - sent_ms} ms: ${reason}`);
    }
  }

  #isIntended(code: string, message: string, sent_ms: number, at_ms: number): boolean {
    if (code === 'model_warming_up') return this.served.wasDown(sent_ms - WARMING_MS, at_ms);
    if (code === 'overloaded') return true;
    return (
      code === 'model_unavailable' && message === QUEUE_FULL && this.served.hadShortQueue(sent_ms, at_ms)
    );
  }
}
