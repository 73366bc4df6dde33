import { openPlanner, openScoringPlanner, stopBuilds } from '../../native/engine.ts';
import type { AccountContext } from '../access/context.ts';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Effective } from '../config/effective.ts';
import { vocabularyOptions } from '../config/open-options.ts';
import type { ConnectionConfig, PaddleConfig, ReloadedConfig, ServeConfig } from '../config/settings.ts';
import { randomIdentifiers } from '../contract/identifiers.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import type { Certificate } from '../http/certificate.ts';
import type { MetricsListener } from '../http/metrics-listener.ts';
import type { RunningServer } from '../http/server.ts';
import type { AdjustableLog, Log } from '../log/log.ts';
import type { LogFile } from '../log/log-file.ts';
import { standardOutput } from '../log/standard-output.ts';
import type { BackupSchedule } from '../maintenance/backup-schedule.ts';
import type { PrometheusMetrics } from '../observability/prometheus-metrics.ts';
import { PROGRAM_VERSION } from '../program/build-info.ts';
import { warnOfUnfitTunings } from '../served-models/unfit-tunings.ts';
import { openService, type Service, type ServiceParts } from '../service.ts';
import type { Database } from '../store/database.ts';
import { MS_PER_S, systemClock } from '../time/clock.ts';
import { announce, type FirstKey, SERVING } from './announce.ts';
import { backupDirectory } from './backup-directory.ts';
import { clockWarning } from './clock-check.ts';
import { type DataContext, type JsonOptions, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { consoleParts } from './console-parts.ts';
import { claimDataDirectory, hasDatabase } from './data-directory.ts';
import { initializeIntoFile } from './first-key.ts';
import { initialize, isInitialized } from './initialize.ts';
import { connectionBounds, listen, listenForMetrics, listenForReloads } from './listeners.ts';
import { paymentProvider } from './payment-provider.ts';
import { reloadMemory } from './reload-model.ts';
import { type ReadServeSettings, Reloader } from './reload-settings.ts';
import type { ReloadListener } from './reload-socket.ts';
import { loadUnlessStopped, openOptionsOf, tryWeights } from './served-models.ts';
import { leaveAddress, removeAddress } from './server-addresses.ts';
import {
  backupSchedule,
  FLUSH_DEADLINE_MS,
  openCertificate,
  openLog,
  openMetrics,
  openTracing,
  warnOfValidity,
} from './server-parts.ts';
import { type Stop, stopSignal } from './stop-signal.ts';

/** The parameters of a start of `tds serve`. */
export interface ServerStart {
  readonly may_initialize: boolean;
  /** The settings at the start. */
  readonly settings: readonly Effective[];
  /** Reads the present settings. Throws `CommandFailed`. */
  readonly readAgain: () => ReadServeSettings;
}

/**
 * Serves until SIGINT or SIGTERM, as the only server on the data directory. Fills an empty database only if
 * `may_initialize` is true. Throws `CommandFailed`.
 */
export async function runServer(
  options: JsonOptions & ServeConfig,
  { may_initialize, settings, readAgain }: ServerStart,
): Promise<void> {
  const is_file = !isPostgres(options.database);
  if (is_file && !hasDatabase(options.data) && !may_initialize) throw noData(options.data);
  const unlock = claimDataDirectory(options.data);
  try {
    await withData(
      options,
      async (context) => {
        const { database, store } = context;
        if (!may_initialize && !(await isInitialized(store)))
          throw is_file ? noData(options.data) : emptyPostgres(database.name);
        await checkDatabase(database);
        await database.noteVersion(PROGRAM_VERSION, systemClock.now_ms());
        await serve(options, context, new Reloader(settings, readAgain));
      },
      { create: may_initialize, claimed: true },
    );
  } finally {
    unlock();
    await standardOutput.flush(FLUSH_DEADLINE_MS);
  }
  // Interrupted work would keep the process alive: a load, its compiler, the reading of a vocabulary.
  process.exit();
}

/**
 * Refuses a damaged database before it is served, where reading all of it takes only a moment. Otherwise the
 * audit of the running service finds the damage. Warns of a clock that is behind the last write.
 */
async function checkDatabase(database: Database): Promise<void> {
  if (!(await database.isSound())) {
    throw new CommandFailed(
      `${database.name} is damaged: move it away and restore a backup with "tds restore FILE --replace".`,
    );
  }
  const past = { written_ms: await database.lastWritten_ms(), made_ms: database.newestMigration_ms };
  const warning = clockWarning(systemClock.now_ms(), past);
  if (warning !== null) process.stderr.write(`tds: ${warning}\n`);
}

function noData(directory: string): CommandFailed {
  return new CommandFailed(
    `There is no data in ${directory}: mount it, name another directory with --data, or start anew with --init.`,
  );
}

function emptyPostgres(place: string): CommandFailed {
  return new CommandFailed(
    `There is no data in ${place}: name another database with --database, or start anew with --init.`,
  );
}

/** The parts of a server whose models are loaded. */
interface ServerParts {
  readonly options: JsonOptions & ServeConfig;
  readonly context: DataContext;
  readonly reloader: Reloader;
  readonly stop: Stop;
  readonly log: AdjustableLog;
  /** Null where the log goes to standard output. */
  readonly log_file: LogFile | null;
  readonly metrics: PrometheusMetrics | null;
  readonly certificate: Certificate | undefined;
  readonly service: Service;
  readonly backups: BackupSchedule | undefined;
  /** The address for links in mails, known once the service listens and before any client can ask for a mail. */
  readonly reached_at: { address: string };
}

/** Opens the parts of a server one after the other, answers requests until it is stopped, and closes them. */
async function serve(
  options: JsonOptions & ServeConfig,
  context: DataContext,
  reloader: Reloader,
): Promise<void> {
  const stop = stopSignal(() => reloader.reload());
  const server_log = await openLog(options);
  const { log } = server_log;
  const metrics = await openMetrics(options);
  const tracing = await openTracing(options);
  const certificate = await openCertificate(options, log, metrics);
  const backup_directory = options.backupEvery === undefined ? undefined : backupDirectory(options);
  const reached_at = { address: '' };
  const service = await openService({
    ...(await serviceParts(options, context, reached_at)),
    ...{ log, metrics: metrics ?? undefined, tracing },
  });
  const backups = backupSchedule(options, backup_directory, context, service, log);
  let reload_listener: ReloadListener | null = null;
  try {
    if (!(await loadUnlessStopped(service, stop))) {
      log.info('stopping: the start is given up');
      return;
    }
    reload_listener = await listenForReloads(options, service, log);
    await answerUntilStopped({
      ...{ options, context, reloader, stop, log, log_file: server_log.log_file },
      ...{ metrics, certificate, service, backups, reached_at },
    });
  } finally {
    certificate?.stop();
    stopBuilds();
    await service.close();
    await reload_listener?.stop();
    await tracing?.close();
    metrics?.close();
    // A start that failed says so itself, in its error.
    if (stop.is_asked) log.info('stopped');
    await server_log.close();
  }
}

/** Returns what a service is made of by these settings. */
async function serviceParts(
  options: JsonOptions & ServeConfig,
  { database }: DataContext,
  reached_at: ServerParts['reached_at'],
): Promise<Omit<ServiceParts, 'log'>> {
  const own_url = () => reached_at.address;
  return {
    database,
    openPlanner: (model) => openPlanner(openOptionsOf(model, options)),
    upstreams: {
      openPlanner: (vocabulary, context_tokens) =>
        openScoringPlanner(vocabularyOptions(vocabulary, context_tokens, options)),
    },
    memoryFor: (model) => reloadMemory(openOptionsOf(model, options).model_path),
    tryWeights: (model) => tryWeights(model, options),
    ...changeable(options),
    clock: systemClock,
    identifiers: randomIdentifiers,
    payment_provider: await paymentProvider(options),
    public_url: options.publicUrl,
    api_reference: options.apiReference === 'on',
    own_url,
    console: await consoleParts(options, database, own_url, (text) => standardOutput.write(text)),
  };
}

/** The reloaded settings that `change` applies by itself; `changeable` has all others. */
type OtherReloaded = keyof PaddleConfig | keyof ConnectionConfig | 'tlsCert' | 'tlsKey' | 'logLevel';

/** Returns the settings that can change while requests are answered. */
function changeable(options: Omit<ReloadedConfig, OtherReloaded>) {
  const { queueLimit, idleUnload, diskFloor, evaluationTimeout, ...others } = options;
  const { usageRetentionDays, auditLogRetentionDays, ...unapplied } = others;
  // A setting that a reload is said to apply, and that nothing applies, does not compile.
  unapplied satisfies Record<string, never>;
  return {
    queue_limit: queueLimit,
    idle_unload_ms: idleUnload * MS_PER_S,
    disk_floor_bytes: diskFloor * BYTES_PER_MEGABYTE,
    evaluation_ms: evaluationTimeout === undefined ? undefined : evaluationTimeout * MS_PER_S,
    usage_retention_days: usageRetentionDays,
    audit_log_retention_days: auditLogRetentionDays,
  };
}

/** Listens, announces itself, and answers requests until a stop is asked; then finishes those in flight. */
async function answerUntilStopped(parts: ServerParts): Promise<void> {
  const { options, stop, log, metrics, service, backups, reached_at } = parts;
  const server = await listen(service, options, parts.certificate);
  reached_at.address = server.address;
  let metrics_listener: MetricsListener | null = null;
  try {
    leaveAddress(options.data, 'service', server.address);
    metrics_listener = await listenForMetrics(metrics, options, service, server, backups);
    if (metrics_listener !== null) leaveAddress(options.data, 'metrics', metrics_listener.url);
    // A stop may have come meanwhile; then an announcement would be outdated.
    if (!stop.is_asked) await announceStart(parts, server, metrics_listener?.url);
    await stop.asked;
    await leave(service, server, options.drainDelay, log);
    service.drain();
    log.info('stopping: finishing the requests in flight', { seconds: options.drainSeconds });
  } finally {
    backups?.stop();
    const requests = await server.stop();
    if (requests > 0) log.warn('the time to finish is over: requests were cut', { requests });
    for (const cut of service.services.cut_requests.counts()) log.warn('cut at the model', { ...cut });
    removeAddress(options.data, 'service');
    if (metrics_listener !== null) {
      removeAddress(options.data, 'metrics');
      await metrics_listener.stop();
    }
  }
}

/** Announces the server, and starts the work that goes on beside its requests. */
async function announceStart(
  parts: ServerParts,
  server: RunningServer,
  metrics_url: string | undefined,
): Promise<void> {
  const { options, context, log, log_file, service, reloader, backups } = parts;
  const { address } = server;
  // Only now, because a failed start would have created a key that nobody saw.
  const first = await firstKey(options, { ...context, store: service.services.store });
  const engine = service.services.models.lifecycle(DEFAULT_MODEL)?.engineIfLoaded();
  const time_ms = systemClock.now_ms();
  announce({ address, first, engine: engine?.facts ?? null, metrics_url, time_ms }, options);
  if (log_file !== null) log.info(SERVING, { address });
  if (options.console === 'on' && options.smtpUrl === undefined) {
    log.warn('mails are written to standard output: set TDS_SMTP_URL and --mail-from to send them');
  }
  if (engine !== undefined && engine !== null) {
    await warnOfUnfitTunings(context.store, DEFAULT_MODEL, engine.facts, log);
  }
  reloader.start({
    log,
    problems: service.services.problems,
    reopenLog: async () => await log_file?.reopen(),
    change: (config) => change(config, { ...parts, server }),
  });
  backups?.start();
}

/**
 * Gives a balancer that time to stop sending requests: `/readyz` fails, while requests are still answered.
 */
async function leave(service: Service, server: RunningServer, seconds: number, log: Log): Promise<void> {
  if (seconds === 0) return;
  service.leave();
  server.endConnections();
  log.info('stopping: requests are still taken, and /readyz fails', { seconds });
  await Bun.sleep(seconds * MS_PER_S);
}

/**
 * Applies the settings that can change while requests are answered. The certificate comes first, because only
 * it can fail. Rejects with `CertificateRefused`, and then changes nothing.
 */
async function change(
  config: ReloadedConfig,
  {
    log,
    service,
    server,
    certificate,
  }: Pick<ServerParts, 'log' | 'service' | 'certificate'> & {
    readonly server: RunningServer;
  },
): Promise<void> {
  const { tlsCert, tlsKey } = config;
  const payment_provider = await paymentProvider(config);
  if (certificate !== undefined && tlsCert !== undefined && tlsKey !== undefined) {
    await certificate.use({ certificate: tlsCert, key: tlsKey });
    warnOfValidity(certificate, log);
  }
  log.level = config.logLevel;
  server.setConnectionLimits(connectionBounds(config));
  service.change({ ...changeable(config), payment_provider });
}

/**
 * Fills an empty database. Its key goes to the terminal. Without one it goes to a file for the owner only,
 * because standard output may end in a log that others read. Returns null when the database was filled
 * before.
 */
async function firstKey(
  { data, owner }: JsonOptions & ServeConfig,
  context: AccountContext,
): Promise<FirstKey | null> {
  if (process.stdout.isTTY) {
    const created = await initialize(context, { owner });
    return created === null ? null : { api_key: created.key };
  }
  const path = await initializeIntoFile(data, context, owner);
  return path === null ? null : { api_key_file: path };
}
