import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { EvaluatorCounts } from '../../native/engine.ts';
import { isOwnModelId } from '../catalog/own-models.ts';
import { BREAKER_STATES } from '../served-models/model-answerer.ts';
import type { DatabaseState } from '../store/database.ts';
import { MS_PER_S } from '../time/clock.ts';
import { inTime } from '../time/in-time.ts';
import { STABILITY_INDEX_MAX } from '../tuning/stability-index.ts';
import { CountedHistogram, type CountedSizes } from './counted-histogram.ts';
import type {
  AnsweredRequest,
  BackupState,
  ChargedDecision,
  DecisionTimes,
  Metrics,
  MetricsSources,
  ServerLoad,
} from './metrics.ts';
import { READINESS_CHECKS } from './readiness.ts';

/** Seconds; from a request on a GPU to one with the longest possible wait. */
const REQUEST_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];
/** Seconds; platform time and commits take a few milliseconds. */
const SHORT_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
/** Tokens, with the evaluators' bounds, which double from one to the next. */
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096];
const LAG_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The interval at which the event loop's lag is measured. */
const LAG_INTERVAL_MS = 100;
const US_PER_S = 1_000_000;
/** Shorter than Prometheus waits for all metrics, which is 10 s unless configured. */
const DATABASE_LOOK_MS = 2_000;

/** The model of counters and histograms for all models of organizations: a customer can make and remove any number. */
const OWN_MODEL = 'own';

type LabelledValue<Label extends string> = readonly [labels: Partial<Record<Label, string>>, value: number];

/** A metric, as the reference describes it. */
export interface MetricFamily {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

/** The labels of the program itself. */
export interface ProgramFacts {
  readonly version: string;
  readonly commit: string;
  readonly runtime: string;
}

/**
 * Metrics in Prometheus' text format. Events are counted as they happen; the state of the service is read
 * when the text is made. The values of labels are known beforehand or named by the operator. No label contains a
 * client's text or a customer's id, but the drift of an organization's own model its id while the model is there.
 */
export class PrometheusMetrics implements Metrics {
  /** All exported metrics, in the order in which they were added. */
  readonly families: MetricFamily[] = [];
  readonly #registry = new Registry();
  readonly #lag_timer: Timer;

  readonly #requests = this.#counter('tds_requests_total', 'Requests that got a response.', [
    'endpoint',
    'model',
    'mode',
    'status',
    'code',
  ]);
  readonly #request_time = this.#histogram(
    'tds_request_seconds',
    'Whole time of requests that had a slot at the model, whatever came of it; lines of batches wait on purpose and are not counted.',
    REQUEST_BUCKETS,
    ['model', 'mode'],
  );
  readonly #platform_time = this.#histogram(
    'tds_platform_seconds',
    'Part of tds_request_seconds outside of the queue and the model.',
    SHORT_BUCKETS,
    ['model', 'mode'],
  );
  readonly #queue_time = this.#histogram(
    'tds_queue_seconds',
    'Part of tds_request_seconds in which the request waits for turns at the model, a load of the model included.',
    REQUEST_BUCKETS,
    ['model', 'mode'],
  );
  readonly #model_time = this.#histogram(
    'tds_model_seconds',
    'Part of tds_request_seconds at the model, without the wait for turns: the latency_ms of answers.',
    REQUEST_BUCKETS,
    ['model', 'mode'],
  );
  readonly #input_tokens = this.#counter('tds_input_tokens_total', 'Input tokens that were charged.', [
    'model',
    'mode',
  ]);
  readonly #questions = this.#counter('tds_questions_total', 'Questions that were answered and charged.', [
    'model',
    'mode',
  ]);
  readonly #charged = this.#counter('tds_charged_micros_total', 'Millionths of a dollar that were charged.', [
    'model',
    'mode',
  ]);
  readonly #replayed = this.#counter(
    'tds_replayed_requests_total',
    'Requests that got the answer of an earlier one with their idempotency key, and were not charged.',
    ['model', 'mode'],
  );
  readonly #commit_time = this.#histogram(
    'tds_commit_seconds',
    'Time of a durable commit of many requests at once: those of one event-loop turn, or, on PostgreSQL, a batch.',
    SHORT_BUCKETS,
  );
  readonly #commit_writes = this.#counter('tds_commit_writes_total', 'Writes in those commits.');
  readonly #audit_violations = this.#gauge('tds_audit_violations', 'Violations that the last audit found.');
  readonly #audit_time = this.#gauge(
    'tds_audit_timestamp_seconds',
    'When the last audit ended, in Unix time; after a start that of the last clean one, 0 where there was none.',
  );
  readonly #lag = this.#histogram(
    'tds_event_loop_lag_seconds',
    `How late the event loop was, asked ${MS_PER_S / LAG_INTERVAL_MS} times a second.`,
    LAG_BUCKETS,
  );

  constructor(program: ProgramFacts, now_ms: () => number = () => performance.now()) {
    const started_s = Date.now() / MS_PER_S - process.uptime();
    const info = this.#gauge('tds_build_info', 'Version and commit of this program; always 1.', [
      'version',
      'commit',
      'runtime',
    ]);
    info.set({ ...program }, 1);
    this.#gauge('process_start_time_seconds', 'When the process started, in Unix time.').set(started_s);
    this.#measure('process_resident_memory_bytes', 'Memory of the process.', () => process.memoryUsage.rss());
    this.#measure('tds_heap_bytes', "Memory of JavaScript's objects.", () => process.memoryUsage().heapUsed);
    this.#counter('process_cpu_seconds_total', 'Time that processors worked for the process.', [], () => {
      const { user, system } = process.cpuUsage();
      return [[{}, (user + system) / US_PER_S]];
    });
    let due_ms = now_ms() + LAG_INTERVAL_MS;
    this.#lag_timer = setInterval(() => {
      const at_ms = now_ms();
      this.#lag.observe(Math.max(0, at_ms - due_ms) / MS_PER_S);
      due_ms = at_ms + LAG_INTERVAL_MS;
    }, LAG_INTERVAL_MS);
    this.#lag_timer.unref();
  }

  /** The media type of the text, with the version of its format. */
  get content_type(): string {
    return this.#registry.contentType;
  }

  /** Returns all metrics in Prometheus' format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Stops the timer; the counts can still be read. */
  close(): void {
    clearInterval(this.#lag_timer);
  }

  requestAnswered({ endpoint, model, mode, status, code }: AnsweredRequest): void {
    this.#requests.inc({
      endpoint: endpoint ?? 'other',
      model: model === null ? 'none' : labelOf(model),
      mode: mode ?? 'none',
      status: String(status),
      code: code ?? 'ok',
    });
  }

  decisionTimed({ model, mode, platform_ms, queue_ms, model_ms }: DecisionTimes): void {
    const labels = { model: labelOf(model), mode };
    this.#request_time.observe(labels, (platform_ms + queue_ms + model_ms) / MS_PER_S);
    this.#platform_time.observe(labels, platform_ms / MS_PER_S);
    this.#queue_time.observe(labels, queue_ms / MS_PER_S);
    this.#model_time.observe(labels, model_ms / MS_PER_S);
  }

  decisionCharged({ model, mode, input_tokens, questions, cost_micros }: ChargedDecision): void {
    const labels = { model: labelOf(model), mode };
    this.#charged.inc(labels, cost_micros);
    this.#input_tokens.inc(labels, input_tokens);
    this.#questions.inc(labels, questions);
  }

  decisionReplayed({ model, mode }: Pick<ChargedDecision, 'model' | 'mode'>): void {
    this.#replayed.inc({ model: labelOf(model), mode });
  }

  committed(duration_ms: number, writes: number): void {
    this.#commit_time.observe(duration_ms / MS_PER_S);
    this.#commit_writes.inc(writes);
  }

  audited(violations: number, at_ms: number): void {
    this.#audit_violations.set(violations);
    this.#audit_time.set(at_ms / MS_PER_S);
  }

  watch(sources: MetricsSources): void {
    const { models, schedulerLoad, answerDrifts, books, problems, readiness, now_ms } = sources;
    this.#watchModels(models);
    this.#watchUpstreams(models);
    this.#watchDatabase(sources);
    this.#measures(
      'tds_ready',
      'Whether the check of /readyz is well; a service that stops looks at nothing but draining.',
      ['check'],
      async () => {
        const failing = await readiness.failing();
        return READINESS_CHECKS.map((check) => [{ check }, Number(!failing.includes(check))]);
      },
    );
    this.#measure(
      'tds_model_requests',
      'Requests at the model, waiting or running.',
      () => schedulerLoad().requests,
    );
    this.#measure(
      'tds_queue_plans',
      'Plans that wait for their turn at the model.',
      () => schedulerLoad().waiting_plans,
    );
    this.#measure(
      'tds_model_running_tokens',
      'Tokens of the plans that the model has now.',
      () => schedulerLoad().running_tokens,
    );
    this.#measures(
      'tds_answer_drift_index',
      `Largest population stability index of a tuned model's questions, of the last seven days and beyond chance; above ${STABILITY_INDEX_MAX} their answers differ from those at tuning.`,
      ['model'],
      () => answerDrifts().map(({ model, index }) => [{ model }, index]),
    );
    this.#measure(
      'tds_holds_open',
      'Holds of requests that have no end on disk yet.',
      () => books.open.holds,
    );
    this.#measure(
      'tds_holds_unwritten',
      'Holds whose release could not be written yet.',
      () => books.unwritten,
    );
    this.#measure('tds_hold_oldest_seconds', 'Age of the oldest open hold; 0 for none.', () => {
      const { oldest_at_ms } = books.open;
      return oldest_at_ms === null ? 0 : Math.max(0, now_ms() - oldest_at_ms) / MS_PER_S;
    });
    this.#counter('tds_problems_total', 'Failures that were our own fault.', ['step'], () =>
      Object.entries(problems.counts()).map(([step, count]) => [{ step }, count]),
    );
  }

  /** Adds the metrics that exist once the service listens. */
  watchServer(load: () => ServerLoad): void {
    this.#measure('tds_connections', 'Connections of clients that are open.', () => load().connections);
    this.#measure(
      'tds_connections_max',
      'Connections of clients that may be open.',
      () => load().connections_max,
    );
    this.#measure('process_open_fds', 'File descriptors that are open.', () => load().descriptors);
    this.#measure('process_max_fds', 'File descriptors that may be open.', () => load().descriptors_max);
  }

  /** Adds the certificate of `--tls-cert`, whose end is read for every text. */
  watchCertificate(expires_ms: () => number): void {
    this.#measure(
      'tds_certificate_expires_timestamp_seconds',
      'When the TLS certificate for new connections expires, in Unix time; not without --tls-cert.',
      () => expires_ms() / MS_PER_S,
    );
  }

  /** Adds the backups of a schedule. */
  watchBackups(state: () => BackupState): void {
    this.#measure(
      'tds_backup_interval_seconds',
      'How often a backup is made.',
      () => state().every_ms / MS_PER_S,
    );
    this.#measure(
      'tds_backup_timestamp_seconds',
      'When the newest backup was begun, in Unix time; 0 where there is none.',
      () => (state().newest?.at_ms ?? 0) / MS_PER_S,
    );
    this.#measure('tds_backup_bytes', 'Size of the newest backup.', () => state().newest?.bytes ?? 0);
    this.#measure(
      'tds_backup_failed',
      'Whether the last try to make a backup, or to copy it off, failed.',
      () => Number(state().has_failed),
    );
  }

  /**
   * Adds what the database says of itself, and the events that wait in it. If it does not answer they have no
   * value; its readiness shows the failure.
   */
  #watchDatabase({
    databaseState,
    unresolvedEvents,
  }: Pick<MetricsSources, 'databaseState' | 'unresolvedEvents'>): void {
    const said = (number: Promise<number | null>) =>
      inTime(number, DATABASE_LOOK_MS, 'The database did not say.').catch(() => null);
    const look = (pick: (state: DatabaseState) => number | null) => () => said(databaseState().then(pick));
    this.#measure(
      'tds_payment_events_unresolved',
      'Payment events of the provider that fit no payment here and wait for the operator, in the whole database.',
      () => said(unresolvedEvents()),
    );
    this.#measure(
      'tds_database_bytes',
      'Size of the database.',
      look(({ bytes }) => bytes),
    );
    this.#measure(
      'tds_disk_free_bytes',
      'Bytes that may still be written to the disk of the database; not on PostgreSQL.',
      look(({ free_bytes }) => free_bytes),
    );
    this.#measure(
      'tds_database_pool_under_way',
      'Transactions and statements of requests that PostgreSQL has not answered, or that wait for a connection.',
      look(({ pool }) => pool?.under_way ?? null),
    );
    this.#measure(
      'tds_database_pool_connections_max',
      'Connections to PostgreSQL for them; those that ledger and lease keep are not among them.',
      look(({ pool }) => pool?.connections_max ?? null),
    );
  }

  #watchModels(models: MetricsSources['models']): void {
    this.#measures('tds_model_ready', 'Whether the model is loaded for the mode.', ['model', 'mode'], () =>
      models().flatMap(({ id, status }) => {
        const { state } = status();
        return [
          [{ model: id, mode: 'fast' }, Number(state === 'ready' || state === 'fast_ready')],
          [{ model: id, mode: 'consistent' }, Number(state === 'ready')],
        ];
      }),
    );
    const counted = (pick: (counts: EvaluatorCounts) => number | undefined) => () =>
      models().flatMap(({ id, counts }): LabelledValue<'model'>[] => {
        const now = counts();
        const value = now === undefined ? undefined : pick(now);
        return value === undefined ? [] : [[{ model: id }, value]];
      });
    // Those of a reloaded model start from 0, which Prometheus takes for a restart; an idle one keeps its own.
    this.#counter(
      'tds_decodes_total',
      'Batches that went through the model.',
      ['model'],
      counted(({ decodes }) => decodes),
    );
    this.#counter(
      'tds_read_tokens_total',
      'Tokens that went through the model.',
      ['model'],
      counted(({ read_tokens }) => read_tokens),
    );
    this.#counter(
      'tds_reused_tokens_total',
      'Tokens of prefixes that were still in memory, and so were not read.',
      ['model'],
      counted(({ reused_tokens }) => reused_tokens),
    );
    this.#countedHistogram(
      'tds_batch_tokens',
      'Tokens of each batch that went through the model, padding aside.',
      BATCH_BUCKETS,
      ['model'],
      () =>
        models().flatMap(({ id, counts }) => {
          const { batches } = counts() ?? {};
          return batches === undefined
            ? []
            : [{ labels: { model: id }, by_size: batches.by_size, sum: batches.tokens }];
        }),
    );
    this.#measures(
      'tds_prefix_cache_bytes',
      'Memory of the prefixes that are kept for records that come again.',
      ['model'],
      counted(({ kept_prefix_bytes }) => kept_prefix_bytes),
    );
    this.#measures(
      'tds_kv_cache_bytes',
      "Memory of the model's keys and values of the tokens that it works on, used and free.",
      ['model'],
      counted(({ kv_cache_bytes }) => kv_cache_bytes),
    );
  }

  /** Adds the members of pools, named by the operator's addresses without the scheme. */
  #watchUpstreams(models: MetricsSources['models']): void {
    const members = () =>
      models().flatMap(({ id, upstreams }) =>
        upstreams().map((upstream) => ({
          ...upstream,
          labels: { model: id, upstream: upstream.address.replace(/^https?:\/\//, '') },
        })),
      );
    this.#measures(
      'tds_upstream_outstanding_tokens',
      'Tokens of calls that the upstream has not answered.',
      ['model', 'upstream'],
      () => members().map(({ labels, outstanding_tokens }) => [labels, outstanding_tokens]),
    );
    this.#measures(
      'tds_upstream_breaker',
      'Whether the breaker of the upstream is in that state: untried before the first request for its model, closed gets requests, half_open is tried, open failed and waits.',
      ['model', 'upstream', 'state'],
      () =>
        members().flatMap(({ labels, breaker }) =>
          BREAKER_STATES.map((state) => [{ ...labels, state }, Number(state === breaker)]),
        ),
    );
    this.#counter(
      'tds_upstream_requests_total',
      'Calls to the upstream for requests of clients.',
      ['model', 'upstream'],
      () => members().map(({ labels, requests }) => [labels, requests]),
    );
    this.#counter(
      'tds_upstream_failures_total',
      "Calls, checks and trials that failed through the upstream's fault.",
      ['model', 'upstream'],
      () => members().map(({ labels, failures }) => [labels, failures]),
    );
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    this.families.push({ name, type: 'gauge', help, labels: labelNames });
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }

  /** Adds a gauge without labels that is read for every text; null leaves it without a value. */
  #measure(name: string, help: string, read: () => number | null | Promise<number | null>): void {
    this.#measures(name, help, [], async () => {
      const value = await read();
      return value === null ? [] : [[{}, value]];
    });
  }

  /** Adds a gauge that is read for every text. A removed model or member leaves no value behind. */
  #measures<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    read: () => readonly LabelledValue<Label>[] | Promise<readonly LabelledValue<Label>[]>,
  ): void {
    this.families.push({ name, type: 'gauge', help, labels: labelNames });
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      async collect() {
        const values = await read();
        // A reset gives a gauge without labels the value 0.
        if (labelNames.length === 0) this.remove();
        else this.reset();
        for (const [labels, value] of values) this.set(labels, value);
      },
    });
  }

  /** Adds a counter. With `count`, its values are counted elsewhere. */
  #counter<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    count?: () => readonly LabelledValue<Label>[],
  ): Counter<Label> {
    this.families.push({ name, type: 'counter', help, labels: labelNames });
    return new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      ...(count === undefined
        ? {}
        : {
            collect() {
              this.reset();
              for (const [labels, value] of count()) this.inc(labels, value);
            },
          }),
    });
  }

  /** Adds a histogram that is counted elsewhere. */
  #countedHistogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[],
    look: () => readonly CountedSizes<Label>[],
  ): void {
    this.families.push({ name, type: 'histogram', help, labels: labelNames });
    new CountedHistogram({ name, help, buckets, labelNames, registers: [this.#registry] }, look);
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> {
    this.families.push({ name, type: 'histogram', help, labels: labelNames });
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }
}

/** Returns the label of a model that was asked. */
function labelOf(model: string): string {
  return isOwnModelId(model) ? OWN_MODEL : model;
}
