import { ERRORS, isErrorCode } from '../errors/errors.ts';
import type { SchedulerLoad } from '../scheduling/model-scheduler.ts';
import { type Clock, MS_PER_S } from '../time/clock.ts';
import type { AnsweredRequest, ChargedDecision, DecisionTimes, Metrics, MetricsSources } from './metrics.ts';
import { type CountedRefusals, RefusalCounts } from './refusal-counts.ts';

/** The number of seconds that are remembered. */
export const ACTIVITY_SECONDS = 300;

/** The interval at which the event loop's lag is measured. */
const SAMPLE_INTERVAL_MS = 100;

/**
 * The endpoint label of the console's requests, many of which are the operator's own views. The playground
 * has another label.
 */
const UNCOUNTED = '/console';

/** The activity of one second. */
interface Second {
  /** The number of the second on the monotonic clock. */
  readonly index: number;
  answered: number;
  refused: number;
  failed: number;
  questions: number;
  input_tokens: number;
  /** The highest value in the second. */
  model_requests: number;
  event_loop_lag_ms: number;
  memory_bytes: number | null;
}

/** The last seconds, oldest first: the same index of every array is the same second. */
export interface ActivityHistory {
  /** The wall-clock time of the beginning of each second. */
  readonly times_ms: readonly number[];
  /** The requests that were answered, refused (4xx), and failed by our own fault (5xx). */
  readonly answered: readonly number[];
  readonly refused: readonly number[];
  readonly failed: readonly number[];
  /** The answered and charged questions, and their input tokens. */
  readonly questions: readonly number[];
  readonly input_tokens: readonly number[];
  /** The most requests at the models at one time; null where not measured. */
  readonly model_requests: readonly (number | null)[];
  /** The highest lag of the event loop; null where not measured. */
  readonly event_loop_lag_ms: readonly (number | null)[];
  readonly memory_bytes: readonly (number | null)[];
}

/** The present state of the service, and its activity in the last minutes. */
export interface Activity {
  readonly now_ms: number;
  readonly queue: SchedulerLoad;
  readonly holds: {
    readonly open: number;
    readonly oldest_at_ms: number | null;
    /** The number of holds whose release could not be written yet. */
    readonly unwritten: number;
  };
  /** The number of failures by our own fault, since the start. */
  readonly problems: number;
  readonly history: ActivityHistory;
}

/**
 * Records the last minutes of the service by the second, and each organization's refusals, for the console. It
 * passes all events on to the metrics. Its memory is bounded: one entry for each second.
 */
export class RecentActivity implements Metrics {
  /** A ring: each second has its index. */
  readonly #seconds: Second[] = [];
  readonly #refusals = new RefusalCounts();
  #sources: MetricsSources | undefined;
  /** The time of the next measurement of the lag; null before the first. */
  #due_ms: number | null = null;

  constructor(
    private readonly metrics: Metrics,
    private readonly clock: Clock,
    private readonly memoryBytes: () => number = () => process.memoryUsage.rss(),
  ) {}

  /** Starts sampling the queue, event loop and memory. Returns a function that stops it. */
  start(): () => void {
    const timer = setInterval(() => this.sample(), SAMPLE_INTERVAL_MS);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** Takes one sample; called by the timer of `start`. */
  sample(): void {
    const at_ms = this.clock.monotonic_ms();
    const second = this.#second(at_ms);
    const lag_ms = this.#due_ms === null ? 0 : at_ms - this.#due_ms;
    second.event_loop_lag_ms = Math.max(second.event_loop_lag_ms, lag_ms);
    second.model_requests = Math.max(second.model_requests, this.#sources?.schedulerLoad().requests ?? 0);
    second.memory_bytes ??= this.memoryBytes();
    this.#due_ms = at_ms + SAMPLE_INTERVAL_MS;
  }

  /** Returns the present state; undefined before `watch`. Leaves out the current second. */
  now(): Activity | undefined {
    if (this.#sources === undefined) return undefined;
    const { schedulerLoad, books, problems } = this.#sources;
    const { holds, oldest_at_ms } = books.open;
    return {
      now_ms: this.clock.now_ms(),
      queue: schedulerLoad(),
      holds: { open: holds, oldest_at_ms, unwritten: books.unwritten },
      problems: Object.values(problems.counts()).reduce((sum, count) => sum + count, 0),
      history: this.#history(),
    };
  }

  /** Returns the refusals of an organization in the last 24 hours, the most frequent code first. */
  refusalsOf(organization_id: string): CountedRefusals[] {
    return this.#refusals.of(organization_id, this.clock.now_ms());
  }

  requestAnswered(request: AnsweredRequest): void {
    this.metrics.requestAnswered(request);
    if (request.endpoint === UNCOUNTED) return;
    const { code, organization_id } = request;
    if (code !== null && organization_id !== null)
      this.#refusals.add(organization_id, code, this.clock.now_ms());
    const second = this.#second();
    if (request.code === null) second.answered += 1;
    else if (isErrorCode(request.code) && ERRORS[request.code].status >= 500) second.failed += 1;
    else second.refused += 1;
  }

  decisionTimed(times: DecisionTimes): void {
    this.metrics.decisionTimed(times);
  }

  decisionCharged(decision: ChargedDecision): void {
    this.metrics.decisionCharged(decision);
    const second = this.#second();
    second.questions += decision.questions;
    second.input_tokens += decision.input_tokens;
  }

  decisionReplayed(decision: Pick<ChargedDecision, 'model' | 'mode'>): void {
    this.metrics.decisionReplayed(decision);
  }

  committed(duration_ms: number, writes: number): void {
    this.metrics.committed(duration_ms, writes);
  }

  audited(violations: number, at_ms: number): void {
    this.metrics.audited(violations, at_ms);
  }

  watch(sources: MetricsSources): void {
    this.metrics.watch(sources);
    this.#sources = sources;
  }

  #second(at_ms = this.clock.monotonic_ms()): Second {
    const index = Math.floor(at_ms / MS_PER_S);
    const known = this.#seconds[index % ACTIVITY_SECONDS];
    if (known?.index === index) return known;
    const fresh: Second = {
      index,
      answered: 0,
      refused: 0,
      failed: 0,
      questions: 0,
      input_tokens: 0,
      model_requests: 0,
      event_loop_lag_ms: 0,
      memory_bytes: null,
    };
    this.#seconds[index % ACTIVITY_SECONDS] = fresh;
    return fresh;
  }

  #history(): ActivityHistory {
    const { clock } = this;
    const monotonic_ms = clock.monotonic_ms();
    const current = Math.floor(monotonic_ms / MS_PER_S);
    // The same second always has the same time, so that a redrawn chart does not jump.
    const zero_ms = clock.now_ms() - monotonic_ms;
    const indices = Array.from(
      { length: ACTIVITY_SECONDS - 1 },
      (_, place) => current - ACTIVITY_SECONDS + 1 + place,
    );
    const seconds = indices.map((index) => {
      const second = this.#seconds[index % ACTIVITY_SECONDS];
      return second?.index === index ? second : undefined;
    });
    const counted = (pick: (second: Second) => number) =>
      seconds.map((second) => (second === undefined ? 0 : pick(second)));
    const sampled = (pick: (second: Second) => number | null) =>
      seconds.map((second) => (second === undefined || second.memory_bytes === null ? null : pick(second)));
    return {
      times_ms: indices.map((index) => Math.round(zero_ms + index * MS_PER_S)),
      answered: counted(({ answered }) => answered),
      refused: counted(({ refused }) => refused),
      failed: counted(({ failed }) => failed),
      questions: counted(({ questions }) => questions),
      input_tokens: counted(({ input_tokens }) => input_tokens),
      model_requests: sampled(({ model_requests }) => model_requests),
      event_loop_lag_ms: sampled(({ event_loop_lag_ms }) => event_loop_lag_ms),
      memory_bytes: sampled(({ memory_bytes }) => memory_bytes),
    };
  }
}
