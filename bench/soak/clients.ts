import type { Accounts } from './accounts.ts';
import { INVALID_REQUESTS, type InvalidRequest } from './invalid-requests.ts';
import type { Answer, Client, Observed } from './observed.ts';
import { DIFFERENT_REQUESTS, flawOf, repeatable, type ValidRequest, validRequest } from './requests.ts';

export const WORKING_CLIENTS = 16;
const LEAVING_CLIENTS = 2;
/** The longest time after which a client leaves: about that of an answer. */
const LEAVES_AFTER_MS_MAX = 600;
/** The pause between two refusals, so that they stay below the free refusals of a minute. */
const INVALID_PAUSE_MS = 60;
const RETRY_MS = 200;
/** The pause between two huge requests, whose fair share would be most of the model's time. */
const HUGE_PAUSE_MS = 15_000;
/** One request in this many repeats a record, whose answer must be the same. */
const REPEATED_ONE_IN = 2;
const NEARLY_A_MEGABYTE = 1_000_000;
const OPTIONS_MAX = 255;
const RECORD = 'The parcel is late and nobody calls. ';
const IS_LATE = { type: 'noul', instructions: 'Is the parcel late?' } as const;
const UNKNOWN_KEY = `sk_svc_${'x'.repeat(32)}`;

/** The clients of the soak, each until `isOver`. */
export class Clients {
  readonly #expected = new Map<number, string>();

  constructor(
    private readonly observed: Observed,
    private readonly accounts: Accounts,
    private readonly isOver: () => boolean,
  ) {}

  /** Asks every repeated request once, alone. Its answer must never change. */
  async learnAnswers(): Promise<void> {
    const [client] = this.accounts.working;
    if (client === undefined) return;
    for (let number = 0; number < DIFFERENT_REQUESTS; number += 1) {
      const answer = await this.askValid(client, validRequest(number));
      const text = answer === null ? null : repeatable(answer.body);
      if (text === null) throw new Error('The first requests were not answered.');
      this.#expected.set(number, text);
    }
  }

  /** Measures the largest request alone, which bounds its later latency. */
  async learnHugeLatency(): Promise<void> {
    const answer = await this.askValid(this.accounts.huge, longestRequest('alone'));
    if (answer?.status !== 200) throw new Error('The largest request was not answered.');
    this.observed.setHugeLatency(answer.latency_ms);
  }

  /** Resolves when every client has ended. */
  async run(): Promise<void> {
    const working = Array.from({ length: WORKING_CLIENTS }, (_, index) => this.#work(index));
    const leaving = Array.from({ length: LEAVING_CLIENTS }, (_, index) => this.#leave(index));
    await Promise.all([...working, ...leaving, this.#askWrongly(), this.#askHugely(), this.#askTooOften()]);
  }

  /** Asks a valid request, and complains of a wrong 200. */
  async askValid(client: Client, request: ValidRequest, leaves?: AbortSignal): Promise<Answer | null> {
    const answer = await this.observed.ask(client, request, leaves);
    if (answer?.status !== 200) return answer;
    const flaw = flawOf(request, answer.body);
    if (flaw !== null) this.observed.complain(`The answer ${answer.request_id} is wrong: ${flaw}.`);
    return answer;
  }

  async #work(index: number): Promise<void> {
    const client = this.accounts.working[index % this.accounts.working.length];
    if (client === undefined) return;
    for (let turn = 0; !this.isOver(); turn += 1) {
      const number = (index * 7 + turn) % DIFFERENT_REQUESTS;
      const is_repeated = turn % REPEATED_ONE_IN === 0;
      const request = validRequest(number, is_repeated ? '' : `Case ${index}-${turn}. `);
      const answer = await this.askValid(client, request);
      if (answer === null) continue;
      if (answer.status === 200) {
        this.observed.waits.push({ at_ms: Date.now(), latency_ms: answer.latency_ms });
        if (is_repeated && repeatable(answer.body) !== this.#expected.get(number))
          this.observed.complain(
            `The answer ${answer.request_id} is another than to the same request before.`,
          );
      } else if (answer.status < 500) {
        this.observed.complain(`A working client got ${answer.status} ${answer.code}.`);
      } else {
        await Bun.sleep(RETRY_MS);
      }
    }
  }

  /** Mostly leaves before its answer. */
  async #leave(index: number): Promise<void> {
    for (let turn = index; !this.isOver(); turn += 1) {
      const leaving = new AbortController();
      const timer = setTimeout(() => leaving.abort(), Math.random() * LEAVES_AFTER_MS_MAX);
      const answer = await this.askValid(
        this.accounts.leaving,
        validRequest(turn, `Left ${turn}. `),
        leaving.signal,
      );
      clearTimeout(timer);
      if (answer !== null && answer.status !== 200) await Bun.sleep(RETRY_MS);
    }
  }

  async #askWrongly(): Promise<void> {
    for (let turn = 0; !this.isOver(); turn += 1) {
      const request = INVALID_REQUESTS[turn % INVALID_REQUESTS.length];
      if (request === undefined) return;
      const answer = await this.observed.ask(this.#whoAsks(request), request);
      if (answer !== null && (answer.status !== request.status || answer.code !== request.code))
        this.observed.complain(
          `${request.status} ${request.code} was expected, and ${answer.status} ${answer.code} came.`,
        );
      await Bun.sleep(INVALID_PAUSE_MS);
    }
  }

  #whoAsks({ key }: InvalidRequest): Client {
    const { working, unpaid, spent } = this.accounts;
    const [good] = working;
    const kind = 'invalid';
    if (key === 'unpaid') return unpaid;
    if (key === 'spent') return spent;
    if (key === 'good' && good !== undefined) return { ...good, kind };
    return { kind, key: key === 'unknown' ? UNKNOWN_KEY : null, project_id: null };
  }

  /** Asks with the longest record, the most questions, the most options, and the largest JSON. */
  async #askHugely(): Promise<void> {
    const options = Array.from({ length: OPTIONS_MAX }, (_, index) => [`option ${index}`, null] as const);
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`question ${index}`, IS_LATE]));
    const which = {
      type: 'choice',
      instructions: 'Which one?',
      criteria: Object.fromEntries(options),
    } as const;
    for (let turn = 0; !this.isOver(); turn += 1) {
      await this.askValid(this.accounts.huge, longestRequest(String(turn)));
      await this.askValid(this.accounts.huge, fastRequest(RECORD.repeat(100), many));
      await this.askValid(this.accounts.huge, fastRequest(RECORD, { which }));
      const nested = '['.repeat(NEARLY_A_MEGABYTE);
      const refused = await this.observed.ask(this.accounts.huge, { path: '/v1/decisions', body: nested });
      if (refused !== null && refused.code !== 'invalid_request')
        this.observed.complain(`Deeply nested JSON got ${refused.status} ${refused.code}.`);
      await this.#pause(HUGE_PAUSE_MS);
    }
  }

  /** Waits, but not beyond the end of the soak. */
  async #pause(for_ms: number): Promise<void> {
    for (const end_ms = Date.now() + for_ms; Date.now() < end_ms && !this.isOver(); )
      await Bun.sleep(RETRY_MS);
  }

  /** Asks faster than its organization's limit. */
  async #askTooOften(): Promise<void> {
    while (!this.isOver()) {
      const answer = await this.askValid(this.accounts.limited, validRequest(0));
      if (answer === null || answer.status === 200 || answer.status >= 500) continue;
      if (answer.code !== 'rate_limit_exceeded')
        this.observed.complain(`A limited client got ${answer.status} ${answer.code}.`);
      await Bun.sleep(RETRY_MS);
    }
  }
}

/** Returns a request with the longest record. Each `name` makes a new record, without a kept prefix. */
function longestRequest(name: string): ValidRequest {
  const record = RECORD.repeat(NEARLY_A_MEGABYTE / RECORD.length);
  return fastRequest(`Case ${name}. ${record}`, { late: IS_LATE });
}

function fastRequest(state: string, questions: ValidRequest['questions']): ValidRequest {
  const body = JSON.stringify({ model: 'decision-1', state, questions });
  return { path: '/v1/decisions', mode: 'fast', questions, body };
}
