import type { DecisionPlanner } from '../native/engine.ts';
import type { FirstStepsContext } from './accounts/first-steps.ts';
import { KeyDirectory } from './accounts/key-directory.ts';
import { LimitRefusals } from './alerts/limit-refusals.ts';
import { AlertRuns } from './alerts/runs.ts';
import { AUDIT_LOG_RETENTION_DAYS } from './audit-log/roll-up.ts';
import { Catalog, type DecisionModelEntry, seedCatalog } from './catalog/catalog.ts';
import { type Console, type ConsoleParts, openConsole } from './console/console.ts';
import type { Identifiers } from './contract/identifiers.ts';
import { CutRequests } from './decisions/cut-requests.ts';
import { type App, type AppServices, createApp } from './http/app.ts';
import { BATCH_LINES } from './http/batch-route.ts';
import { type BodyLimits, openBodyLimits } from './http/body-bytes.ts';
import { IdempotencyQueue } from './idempotency/queue.ts';
import { BodyBudget } from './limits/body-budget.ts';
import { openLimits } from './limits/open-limits.ts';
import { WINDOW_MS } from './limits/rate-status.ts';
import type { Log } from './log/log.ts';
import { Audits } from './maintenance/audits.ts';
import { startMaintenance } from './maintenance/maintenance.ts';
import { type Metrics, NO_METRICS } from './observability/metrics.ts';
import { Readiness } from './observability/readiness.ts';
import { RecentActivity } from './observability/recent-activity.ts';
import { NO_TRACING, type Tracing } from './observability/tracing.ts';
import type { BillingContext } from './payments/billing.ts';
import type { PaymentProvider } from './payments/provider.ts';
import { ProblemLog } from './problems/problem-log.ts';
import { inBackground, type ProblemStep } from './problems/problems.ts';
import { QUEUE_LIMIT } from './scheduling/model-scheduler.ts';
import { AnswerCounts } from './served-models/answer-counts.ts';
import { Reloads } from './served-models/console-reloads.ts';
import { followCatalog, loadCatalog, startFollowingCatalog } from './served-models/follow-catalog.ts';
import { isTuned, Models } from './served-models/models.ts';
import { openReloading, type ReloadParts, type ReloadRequest } from './served-models/reload.ts';
import type { Database, ServedDatabase } from './store/database.ts';
import type { Store } from './store/store.ts';
import { CLIENT_TIMEOUT_MS } from './time/client-timeout.ts';
import type { Clock } from './time/clock.ts';
import { type Pause, pauseByTimer } from './time/pause.ts';
import { UpstreamModel, type UpstreamOptions } from './upstreams/upstream-model.ts';
import type { AnalyticsContext } from './usage/analytics.ts';
import { usedLimits } from './usage/used-limits.ts';

/** The settings that can change while requests are answered. */
export interface ServiceChanges {
  /** The requests that one model may have, waiting or running. */
  readonly queue_limit: number;
  /** Milliseconds without a request after which a model's weights are unloaded; 0 keeps them. */
  readonly idle_unload_ms: number;
  /** The free bytes of the database's disk below which the service is not ready. */
  readonly disk_floor_bytes: number;
  /** The longest time from a request's first scheduled plan to its answer; undefined for one by its tokens. */
  readonly evaluation_ms: number | undefined;
  /** The days after which usage is rolled up into daily totals; undefined for never. */
  readonly usage_retention_days: number | undefined;
  /** The days after which acts in the audit log are rolled up. */
  readonly audit_log_retention_days: number;
  /**
   * The provider whose webhooks are accepted; null where only the operator gives credit. A change from or to
   * null waits for a restart.
   */
  readonly payment_provider: PaymentProvider | null;
}

/**
 * The parts that a service is made of: its database, its models, and its sources of time and ids. Most settings
 * that can change have defaults.
 */
export interface ServiceParts extends Partial<ServiceChanges> {
  readonly idle_unload_ms: number;
  readonly payment_provider: PaymentProvider | null;
  readonly database: Database;
  /** Reads the vocabulary of a model of the catalog. */
  readonly openPlanner: (model: DecisionModelEntry) => Promise<DecisionPlanner>;
  /** Returns the memory for a second set of a model's weights; not checked by default. */
  readonly memoryFor?: ReloadParts['memoryFor'];
  /** Tries new weights before they are loaded; undefined loads them at once. */
  readonly tryWeights?: ReloadParts['tryWeights'];
  /** The bounds of the upstreams that differ from the defaults, and the reader of their vocabularies. */
  readonly upstreams?: Partial<Pick<UpstreamOptions, 'schedule' | 'answer_ms' | 'trial_ms' | 'openPlanner'>>;
  /** The usage rows of rejected requests that an organization may leave in a day. */
  readonly rejected_rows_per_day?: number;
  /** How lines of batches wait; by the machine's timers by default. */
  readonly pause?: Pause | undefined;
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly log: Log;
  /** The address that the documents and the OpenAPI document name, such as `https://tds.example.com`. */
  readonly public_url?: string | undefined;
  /** Returns the address at which the service listens, which the documents name where there is no public one. */
  readonly own_url: () => string;
  /** False removes the API reference at `/swagger`. */
  readonly api_reference?: boolean;
  /** The metrics; none by default. */
  readonly metrics?: Metrics | undefined;
  /** The traces; none by default. */
  readonly tracing?: Tracing | undefined;
  /** Returns the free bytes where the database is; asks the database by default. */
  readonly freeBytes?: (() => Promise<number>) | undefined;
  /** The bounds of bodies in reception that differ from the defaults. */
  readonly body_limits?: Partial<BodyLimits>;
  /** The parts of the console; without them there is none. */
  readonly console?: ConsoleParts | undefined;
}

/** A service on its database, without a port. */
export interface Service extends App {
  readonly services: AppServices &
    AnalyticsContext &
    BillingContext &
    FirstStepsContext & {
      readonly keys: KeyDirectory;
      readonly catalog: Catalog;
      readonly models: Models;
      readonly answer_counts: AnswerCounts;
      readonly unplanned_bodies: BodyBudget;
      readonly idempotency: IdempotencyQueue;
      readonly cut_requests: CutRequests;
      readonly store: Store;
      readonly readiness: Readiness;
      readonly audits: Audits;
      readonly problems: ProblemLog;
      readonly console: Console | null;
      /** Null without a console, which shows them. */
      readonly alerts: AlertRuns | null;
    };
  /** Makes the service not ready; requests are answered as before. */
  leave(): void;
  /** Refuses all new requests; call it before the ports are stopped. */
  drain(): void;
  /** Changes the settings for later requests and runs; those under way keep the old ones. */
  readonly change: (changes: ServiceChanges) => void;
  /**
   * Loads the default model, if it is open, and starts loading all others. Rejects with `ModelUnavailable`
   * for the default one; failures of the others are reported.
   */
  loadModels(): Promise<void>;
  /**
   * Swaps an open model's weights while requests go on. Rejects with `ReloadRefused`, or with another error,
   * which is reported; then the weights stay.
   */
  reloadModel(request: ReloadRequest): Promise<void>;
  /**
   * Writes all pending changes and unloads the models; the database stays open. Call it after the last
   * request.
   */
  close(): Promise<void>;
}

/**
 * Closes the holds of an earlier process, restores the rate windows, and wires the parts together. Loads no
 * model. Rejects as the database does.
 */
export async function openService(parts: ServiceParts): Promise<Service> {
  const watching = openWatching(parts);
  const answering = await openAnswering(parts, watching);
  const opened = openConsoleOf(parts, watching, answering);
  const alerts =
    opened.console === null
      ? null
      : new AlertRuns({ ...answering, now_ms: answering.database.now_ms, mail: opened.console.mailAlert });
  const { database, ...services } = { ...answering, ...opened, alerts };
  const { maintenance, stopUpkeep } = await startUpkeep(parts, answering, alerts);
  const { draining, models, catalog, problems, readiness, reload } = services;
  const drain = () => {
    readiness.drain();
    draining.abort();
  };
  return {
    services,
    ...createApp(services),
    loadModels: () => loadCatalog({ catalog, models }),
    change({ queue_limit, idle_unload_ms, disk_floor_bytes, evaluation_ms, ...others }) {
      const { payment_provider, usage_retention_days, audit_log_retention_days, ...unapplied } = others;
      unapplied satisfies Record<string, never>;
      models.setQueueLimit(queue_limit);
      models.setIdleUnload(idle_unload_ms);
      readiness.setDiskFloor(disk_floor_bytes);
      services.model_time.evaluation_ms = evaluation_ms ?? null;
      const { payments } = services;
      if (payments !== null && payment_provider !== null) payments.provider = payment_provider;
      maintenance.usage_retention_days = usage_retention_days ?? null;
      maintenance.audit_log_retention_days = audit_log_retention_days;
    },
    reloadModel: reload,
    leave: () => readiness.drain(),
    drain,
    async close() {
      drain();
      stopUpkeep();
      services.stopActivity();
      await closeAnswering(answering, parts.log);
      await alerts?.idle();
      await services.console?.close();
      await database.close();
      problems.close();
    },
  };
}

/** Opens what observes the service: metrics, the log of problems, traces. */
function openWatching({ clock, log, tracing = NO_TRACING, ...parts }: ServiceParts) {
  const activity = new RecentActivity(parts.metrics ?? NO_METRICS, clock);
  // Only the console reads the recent activity.
  const metrics: Metrics = parts.console === undefined ? (parts.metrics ?? NO_METRICS) : activity;
  const problems = new ProblemLog(log, clock);
  const report = (step: ProblemStep, error: unknown) => problems.report(inBackground(step, error));
  tracing.onFailure((error) => report('trace_export', error));
  return { activity, metrics, problems, tracing, report };
}

type Watching = ReturnType<typeof openWatching>;
type Answering = Awaited<ReturnType<typeof openAnswering>>;

/** Opens all that answers requests: the database, its books, limits and models. */
async function openAnswering(parts: ServiceParts, { metrics, problems, tracing, report }: Watching) {
  const { clock, identifiers, log } = parts;
  const database = await parts.database.serve({
    clock,
    process_id: identifiers.id('process'),
    log,
    report,
    onCommit: (duration_ms, writes) => metrics.committed(duration_ms, writes),
  });
  const { store, books, reader, windows } = database;
  await store.transaction((records) => seedCatalog(records.catalog));
  const released = await books.recover();
  if (released > 0) log.warn('released the holds that the last run left open', { holds: released });
  const { rejected_rows_per_day, payment_provider: provider } = parts;
  const limits = await openLimits({
    clock,
    usedLimits: () => usedLimits(store.usage, clock.now_ms(), WINDOW_MS),
    windows,
    rejected_rows_per_day,
  });
  const keys = new KeyDirectory(store.keys, clock);
  store.onKeyChange(() => keys.invalidate());
  const catalog = new Catalog(database.catalog);
  const answer_counts = new AnswerCounts({ store, clock, problems });
  const models = openModels(parts, { store, answer_counts, problems });
  models.follow(await catalog.listDecisionModels());
  const readiness = openReadiness(parts, database, models, problems);
  metrics.watch({
    models: () => models.observed(),
    schedulerLoad: () => models.schedulerLoad(),
    answerDrifts: () => answer_counts.drifts(),
    books,
    problems,
    readiness,
    databaseState: database.state,
    unresolvedEvents: () => store.payments.countEvents('unresolved'),
    now_ms: () => clock.now_ms(),
  });
  const draining = new AbortController();
  const memoryFor = parts.memoryFor ?? (() => Promise.resolve(null));
  const tryWeights = parts.tryWeights ?? (() => Promise.resolve(null));
  const reload = openReloading({ store, clock, models, memoryFor, tryWeights, log, problems, draining });
  return {
    ...{ clock, identifiers, log, metrics, problems, tracing, draining },
    ...{ database, store, books, reader, keys, catalog, models, answer_counts, readiness, reload },
    ...limits,
    limit_refusals: new LimitRefusals(),
    audits: new Audits(database.history, { clock, log, metrics, problems }),
    payments: provider === null ? null : { context: { store, clock, identifiers }, provider },
    site: {
      public_url: parts.public_url ?? null,
      own_url: parts.own_url,
      has_reference: parts.api_reference ?? true,
      has_console: parts.console !== undefined,
    },
    pause: parts.pause ?? pauseByTimer,
    idempotency: new IdempotencyQueue(store.idempotency, clock),
    body_limits: openBodyLimits(parts.body_limits),
    batch_lines: new BodyBudget(BATCH_LINES),
    cut_requests: new CutRequests(),
    model_time: { waiting_ms: CLIENT_TIMEOUT_MS, evaluation_ms: parts.evaluation_ms ?? null },
  };
}

/** Opens the models, each with an engine or with upstreams. */
function openModels(
  parts: ServiceParts,
  { store, answer_counts, problems }: Pick<Answering, 'store' | 'answer_counts' | 'problems'>,
): Models {
  const { clock, openPlanner, queue_limit = QUEUE_LIMIT, idle_unload_ms } = parts;
  return new Models({
    openPlanner,
    readTuning: (model_id) => store.catalog.findTuning(model_id),
    answer_counts,
    openUpstreams: (model) =>
      new UpstreamModel(model, {
        ...parts.upstreams,
        now_ms: () => clock.monotonic_ms(),
        onProblem: (error) => problems.report(inBackground('upstream', error, model.id)),
      }),
    queue_limit,
    idle_unload_ms,
    clock,
    problems,
  });
}

function openReadiness(
  { clock, disk_floor_bytes, freeBytes }: ServiceParts,
  database: ServedDatabase,
  models: Models,
  problems: ProblemLog,
): Readiness {
  return new Readiness({
    models: () => models.observed(),
    write: database.write,
    disk_floor_bytes,
    freeBytes: freeBytes ?? database.freeBytes,
    clock,
    problems,
  });
}

/** Opens the console, where the service has one. */
function openConsoleOf(parts: ServiceParts, { activity }: Watching, answering: Answering) {
  if (parts.console === undefined) return { console: null, stopActivity: () => undefined };
  const { audits, models, answer_counts, store, clock, catalog, problems, database, reload } = answering;
  const operation = {
    activity,
    audits,
    models,
    answer_counts,
    reloads: new Reloads({ store, clock }, reload),
    followCatalog: () => followCatalog({ catalog, models, problems }),
  };
  const base = { ...answering, decisions: answering, operation, isDatabaseAway: database.isAway };
  return { console: openConsole(base, parts.console, database.signIn), stopActivity: activity.start() };
}

/** Starts the background work. Resolves once the tiers that time raises are written. */
async function startUpkeep(parts: ServiceParts, answering: Answering, alerts: AlertRuns | null) {
  const { database, audits, catalog, models, answer_counts, problems } = answering;
  const maintenance = {
    ...answering,
    alerts,
    history: audits,
    beginsHourlyRun: database.beginsHourlyRun,
    usage_retention_days: parts.usage_retention_days ?? null,
    audit_log_retention_days: parts.audit_log_retention_days ?? AUDIT_LOG_RETENTION_DAYS,
  };
  void answer_counts.resume(
    async () => (await catalog.listDecisionModels()).filter(isTuned),
    (model) => models.tuningEntries(model),
  );
  const stopMaintenance = await startMaintenance(maintenance, await database.auditedAt_ms());
  const stopFollowing = startFollowingCatalog({ catalog, models, problems });
  database.startUpkeep();
  return {
    /** Its days can change between two runs. */
    maintenance,
    stopUpkeep() {
      stopMaintenance();
      stopFollowing();
    },
  };
}

/**
 * Closes the models first, which refuse the waiting requests. Their holds are released before the books close.
 */
async function closeAnswering(
  { models, answer_counts, keys, books, problems }: Answering,
  log: Log,
): Promise<void> {
  await models.close();
  await answer_counts.flush();
  await keys.flushLastUsed().catch((error: unknown) => problems.report(inBackground('last_used', error)));
  await books.close();
  if (books.unwritten > 0) {
    log.error('holds are left for the next start to release', { holds: books.unwritten });
  }
}
