import {
  EMBEDDED_WEIGHTS,
  type OpenOptions,
  openPlanner,
  openScoringPlanner,
  SetupError,
  weightsBytes,
} from '../../native/engine.ts';
import type { AccountContext } from '../access/context.ts';
import { buildInfo } from '../build-info.ts';
import { BYTES_PER_MEGABYTE } from '../bytes.ts';
import { DEFAULT_MODEL, type DecisionModelEntry } from '../catalog/catalog.ts';
import { MS_PER_S, systemClock } from '../clock.ts';
import { paddleSettings } from '../config/combinations.ts';
import { isPostgres } from '../config/database-address.ts';
import type { Effective } from '../config/effective.ts';
import { openOptions, vocabularyOptions } from '../config/open-options.ts';
import type { ServeConfig } from '../config/settings.ts';
import { Certificate, CertificateRefused } from '../http/certificate.ts';
import { descriptorLimit, openDescriptors } from '../http/file-descriptors.ts';
import { ListenRefused } from '../http/listen.ts';
import { type MetricsListener, startMetricsListener } from '../http/metrics-listener.ts';
import { type ConnectionBounds, type RunningServer, startServer } from '../http/server.ts';
import { randomIdentifiers } from '../identifiers.ts';
import { type AdjustableLog, createLog, type Log } from '../log/log.ts';
import { LogFile } from '../log/log-file.ts';
import { BoundedOutput, standardOutput } from '../log/standard-output.ts';
import { BackupCommand } from '../ops/backup-command.ts';
import { BackupSchedule } from '../ops/backup-schedule.ts';
import type { PrometheusMetrics } from '../ops/prometheus-metrics.ts';
import type { Tracing } from '../ops/tracing.ts';
import { paddleProvider } from '../payments/paddle.ts';
import type { PaymentProvider } from '../payments/provider.ts';
import { openService, type Service } from '../service.ts';
import { EMBEDDED } from '../store/catalog-records.ts';
import type { Database } from '../store/database.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { announce, type FirstKey, SERVING } from './announce.ts';
import { backupDirectory } from './backup-directory.ts';
import { checkWeights } from './check-weights.ts';
import { clockWarning } from './clock-check.ts';
import { type DataContext, type JsonOptions, withData } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { consoleParts } from './console-parts.ts';
import { claimDataDirectory, hasDatabase } from './data-directory.ts';
import { initializeIntoFile } from './first-key.ts';
import { initialize, isInitialized } from './initialize.ts';
import { PROGRAM_VERSION } from './program-version.ts';
import { type ReadServeSettings, Reloader } from './reload.ts';
import { reloadMemory } from './reload-model.ts';
import { type ReloadListener, type ServedModelState, startReloadListener } from './reload-socket.ts';
import { leaveAddress, removeAddress } from './server-addresses.ts';
import { type Stop, stopSignal } from './stop-signal.ts';

/** The longest wait at the end for a reader of the last lines. */
const FLUSH_DEADLINE_MS = 2_000;

const PERCENT = 100;

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

async function serve(
  options: JsonOptions & ServeConfig,
  context: DataContext,
  reloader: Reloader,
): Promise<void> {
  const stop = stopSignal(() => reloader.reload());
  const log_file = await openLogFile(options);
  const output = log_file === null ? standardOutput : new BoundedOutput(log_file);
  const log = createLog(options.logLevel, output, { has_client_address: options.logClientAddress });
  const metrics = await openMetrics(options);
  const tracing = await openTracing(options);
  const certificate = await openCertificate(options, log);
  const backup_directory = options.backupEvery === undefined ? undefined : backupDirectory(options);
  // The address for links in mails is known once the service listens, before any client can ask for a mail.
  let address = '';
  const service = await openService({
    database: context.database,
    openPlanner: (model) => openPlanner(openOptionsOf(model, options)),
    upstreams: {
      openPlanner: (vocabulary, context_tokens) =>
        openScoringPlanner(vocabularyOptions(vocabulary, context_tokens, options)),
    },
    memoryFor: (model) => reloadMemory(openOptionsOf(model, options).model_path),
    tryWeights: (model) => tryWeights(model, options),
    idle_unload_ms: options.idleUnload * 1_000,
    disk_floor_bytes: options.diskFloor * BYTES_PER_MEGABYTE,
    usage_retention_days: options.usageRetentionDays,
    audit_log_retention_days: options.auditLogRetentionDays,
    queue_limit: options.queueLimit,
    evaluation_ms: evaluation_ms(options),
    clock: systemClock,
    identifiers: randomIdentifiers,
    log,
    payment_provider: paymentProvider(options),
    public_url: options.publicUrl,
    api_reference: options.apiReference === 'on',
    metrics: metrics ?? undefined,
    tracing,
    console: await consoleParts(
      options,
      context.database,
      () => address,
      (text) => standardOutput.write(text),
    ),
  });
  const backups = backupSchedule(options, backup_directory, context, service, log);
  let reload_listener: ReloadListener | null = null;
  try {
    if (!(await loadUnlessStopped(service, stop))) {
      log.info('stopping: the start is given up');
      return;
    }
    reload_listener = await listenForReloads(options, service, log);
    const server = await listen(service, options, certificate);
    address = server.address;
    let metrics_listener: MetricsListener | null = null;
    try {
      leaveAddress(options.data, 'service', address);
      metrics_listener = await listenForMetrics(metrics, options, service, server, backups);
      if (metrics_listener !== null) leaveAddress(options.data, 'metrics', metrics_listener.url);
      // A stop may have come meanwhile; then an announcement would be outdated.
      if (!stop.is_asked) {
        // Only now, because a failed start would have created a key that nobody saw.
        const first = await firstKey(options, { ...context, store: service.services.store });
        const engine = service.services.models.lifecycle(DEFAULT_MODEL)?.engineIfLoaded();
        const metrics_url = metrics_listener?.url;
        const time_ms = systemClock.now_ms();
        announce({ address, first, engine: engine?.facts ?? null, metrics_url, time_ms }, options);
        if (log_file !== null) log.info(SERVING, { address });
        if (options.console === 'on' && options.smtpUrl === undefined) {
          log.warn('mails are written to standard output: set TDS_SMTP_URL and --mail-from to send them');
        }
        reloader.start(log, service.services.problems, (config) =>
          change(config, { log, log_file, service, server, certificate }),
        );
        backups?.start();
      }
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
  } finally {
    certificate?.stop();
    await service.close();
    await reload_listener?.stop();
    await tracing?.close();
    metrics?.close();
    // A start that failed says so itself, in its error.
    if (stop.is_asked) log.info('stopped');
    // Standard output is flushed after the data directory is released; a file needs no reader.
    if (log_file !== null) {
      await output.flush(FLUSH_DEADLINE_MS);
      await log_file.close();
    }
  }
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

/** Opens the file of `--log-file`; null where the log goes to standard output. */
async function openLogFile({ logFile, logFileSize, logFileKeep }: ServeConfig): Promise<LogFile | null> {
  if (logFile === undefined) return null;
  try {
    return await LogFile.open(logFile, { bytes_max: logFileSize * BYTES_PER_MEGABYTE, keep: logFileKeep });
  } catch (error) {
    const code = systemErrorCode(error);
    const reason = code === undefined ? '' : ` (${code})`;
    const advice = code === 'ENOENT' ? 'make its folder' : 'give this user the right to write it';
    throw new CommandFailed(
      `The log file ${logFile} cannot be opened for writing${reason}: ${advice}, or name another with --log-file.`,
      { cause: error },
    );
  }
}

/** Opens the metrics of `--metrics-port`; null for none. */
async function openMetrics({ metricsPort }: ServeConfig): Promise<PrometheusMetrics | null> {
  if (metricsPort === undefined) return null;
  // Loaded only on request, because it slows the start by a tenth of a second.
  const { PrometheusMetrics } = await import('../ops/prometheus-metrics.ts');
  return new PrometheusMetrics({ ...buildInfo(), runtime: `bun ${Bun.version}` });
}

/** Opens the traces of `--otlp-endpoint`; undefined for none. */
async function openTracing({
  otlpEndpoint: url,
  otlpHeaders: headers = {},
  tracePercent,
}: ServeConfig): Promise<Tracing | undefined> {
  if (url === undefined) return undefined;
  // Loaded only on request, as metrics are.
  const { OtlpTracing } = await import('../ops/otlp-tracing.ts');
  const instance_id = randomIdentifiers.id('process');
  return new OtlpTracing({
    url,
    headers,
    ratio: tracePercent / PERCENT,
    version: PROGRAM_VERSION,
    instance_id,
    clock: systemClock,
  });
}

async function listenForMetrics(
  metrics: PrometheusMetrics | null,
  { metricsHost: host, metricsPort: port }: ServeConfig,
  { services: { problems } }: Service,
  server: RunningServer,
  backups: BackupSchedule | undefined,
): Promise<MetricsListener | null> {
  if (metrics === null || port === undefined) return null;
  const descriptors_max = descriptorLimit();
  metrics.watchServer(() => ({
    connections: server.connections,
    connections_max: server.connection_limit,
    descriptors: openDescriptors(),
    descriptors_max,
  }));
  if (backups !== undefined) metrics.watchBackups(() => backups.state());
  try {
    return await startMetricsListener(metrics, { host, port }, problems);
  } catch (error) {
    if (error instanceof ListenRefused) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

/**
 * Receives the requests of `tds model reload` and `tds key revoke`. Returns null where the socket cannot be
 * created, because the server works without it.
 */
async function listenForReloads(
  options: ServeConfig & JsonOptions,
  service: Service,
  log: Log,
): Promise<ReloadListener | null> {
  try {
    return await startReloadListener(options.data, {
      reload: (request) => service.reloadModel(request),
      forgetKeys: () => service.services.keys.invalidate(),
      modelStates: () => modelStates(service, options),
    });
  } catch (error) {
    log.warn(
      'models cannot be reloaded, nor revoked keys be refused at once: no socket can be made in the data directory',
      {
        reason: systemErrorCode(error) ?? String(error),
      },
    );
    return null;
  }
}

/** Returns the states of the service's models. Rejects when the catalog or the weights cannot be read. */
async function modelStates(
  { services: { catalog, models } }: Service,
  options: ServeConfig,
): Promise<ServedModelState[]> {
  const rows = new Map((await catalog.listDecisionModels()).map((row) => [row.id, row]));
  return await Promise.all(
    models.observed().map(async ({ id, status, counts }) => {
      const { state, load_error = null } = status();
      const counted = counts();
      const row = rows.get(id);
      // A tuned model shares its base's memory.
      if (counted === undefined || row === undefined || 'upstreams' in row || 'base' in row) {
        return { id, state, load_error, memory_bytes: null };
      }
      const { model_path = EMBEDDED_WEIGHTS } = openOptionsOf(row, options);
      const { kept_prefix_bytes, kv_cache_bytes = 0 } = counted;
      const memory_bytes = (await weightsBytes(model_path)) + kv_cache_bytes + kept_prefix_bytes;
      return { id, state, load_error, memory_bytes };
    }),
  );
}

/**
 * Returns the options for opening a model of the catalog; `--model` replaces the weights of the default one.
 */
function openOptionsOf(model: DecisionModelEntry, options: ServeConfig): OpenOptions {
  const { id, context_tokens, weights } = model;
  const common = { ...openOptions(options), context_tokens };
  if (id === DEFAULT_MODEL && options.model !== undefined) return common;
  return { ...common, model_path: weights === EMBEDDED ? undefined : weights, expected: model };
}

/** Returns the reason why the weights cannot be served, or null. */
async function tryWeights(model: DecisionModelEntry, options: ServeConfig): Promise<string | null> {
  const { model_path = EMBEDDED, context_tokens } = openOptionsOf(model, options);
  try {
    await checkWeights(model_path, options, { context_tokens, is_silent: true });
    return null;
  } catch (error) {
    if (error instanceof CommandFailed) return error.message;
    throw error;
  }
}

/** Returns the backups of `--backup-every`; undefined for none. */
function backupSchedule(
  { backupEvery: every_ms, backupKeep, backupCommand }: ServeConfig,
  directory: string | undefined,
  { database }: DataContext,
  { services: { clock, problems } }: Service,
  log: Log,
): BackupSchedule | undefined {
  if (every_ms === undefined || directory === undefined || database.backups === null) return undefined;
  const backups = database.backups(directory, backupKeep);
  const command = backupCommand === undefined ? null : new BackupCommand(backupCommand);
  return new BackupSchedule({ backups, command, every_ms, clock, log, problems });
}

/** Opens the certificate of `--tls-cert`, which is read again when its files change; undefined for none. */
async function openCertificate(
  { tlsCert, tlsKey }: ServeConfig,
  log: Pick<Log, 'info' | 'error'>,
): Promise<Certificate | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  try {
    const certificate = await Certificate.open({ certificate: tlsCert, key: tlsKey });
    certificate.watch({
      onReload: () => log.info('new connections get the new TLS certificate'),
      onFailure: ({ message }) => log.error('the TLS certificate before stays', { reason: message }),
    });
    return certificate;
  } catch (error) {
    if (error instanceof CertificateRefused) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

/** Returns Paddle if its settings are given, else null. */
function paymentProvider(config: ServeConfig): PaymentProvider | null {
  const settings = paddleSettings(config);
  return settings === null ? null : paddleProvider(settings);
}

/**
 * Applies the settings that can change while requests are answered. The certificate comes first, because only
 * it can fail. Rejects with `CertificateRefused`, and then changes nothing.
 */
async function change(
  config: ServeConfig,
  { log, log_file, service, server, certificate }: RunningParts,
): Promise<void> {
  const { tlsCert, tlsKey } = config;
  const payment_provider = paymentProvider(config);
  if (tlsCert !== undefined && tlsKey !== undefined)
    await certificate?.use({ certificate: tlsCert, key: tlsKey });
  log.level = config.logLevel;
  // External log rotation uses the same signal.
  await log_file?.reopen();
  server.setConnectionLimits(connectionBounds(config));
  service.change({
    queue_limit: config.queueLimit,
    idle_unload_ms: config.idleUnload * 1_000,
    disk_floor_bytes: config.diskFloor * BYTES_PER_MEGABYTE,
    evaluation_ms: evaluation_ms(config),
    usage_retention_days: config.usageRetentionDays,
    audit_log_retention_days: config.auditLogRetentionDays,
    payment_provider,
  });
}

/** Returns the configured longest evaluation; undefined for one by the request. */
function evaluation_ms({ evaluationTimeout }: ServeConfig): number | undefined {
  return evaluationTimeout === undefined ? undefined : evaluationTimeout * 1_000;
}

interface RunningParts {
  readonly log: AdjustableLog;
  /** Null where the log goes to standard output. */
  readonly log_file: LogFile | null;
  readonly service: Service;
  readonly server: RunningServer;
  readonly certificate: Certificate | undefined;
}

function connectionBounds(config: ServeConfig): ConnectionBounds {
  return {
    connection_limit: config.connectionLimit,
    connection_limit_per_address: config.connectionLimitPerAddress,
  };
}

/** Loads the default model before the first request, so that unusable weights stop the start. */
async function load(service: Service): Promise<void> {
  try {
    await service.loadModels();
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (cause instanceof SetupError) throw new CommandFailed(cause.message, { cause });
    throw error;
  }
}

/** Loads as `load` does. Returns false when a stop comes first; the service's close then handles the load. */
async function loadUnlessStopped(service: Service, stop: Stop): Promise<boolean> {
  if (stop.is_asked) return false;
  const loading = load(service);
  // Nothing is lost: before a stop the race below rejects too, and after it nobody needs the model.
  loading.catch(() => {});
  await Promise.race([loading, stop.asked]);
  return !stop.is_asked;
}

async function listen(
  service: Service,
  config: ServeConfig,
  certificate: Certificate | undefined,
): Promise<RunningServer> {
  const { host, port } = config;
  try {
    return await startServer(
      service,
      { host, port },
      {
        ...connectionBounds(config),
        client_address_header: config.clientAddressHeader,
        certificate,
        drain_ms: config.drainSeconds * 1_000,
      },
    );
  } catch (error) {
    if (error instanceof ListenRefused) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
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
