import type { ServeConfig } from '../config/settings.ts';
import { randomIdentifiers } from '../contract/identifiers.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { Certificate, CertificateRefused } from '../http/certificate.ts';
import { type AdjustableLog, createLog, type Log } from '../log/log.ts';
import { LogFile } from '../log/log-file.ts';
import { BoundedOutput, standardOutput } from '../log/standard-output.ts';
import { BackupCommand } from '../maintenance/backup-command.ts';
import { BackupSchedule } from '../maintenance/backup-schedule.ts';
import type { PrometheusMetrics } from '../observability/prometheus-metrics.ts';
import type { Tracing } from '../observability/tracing.ts';
import { buildInfo, PROGRAM_VERSION } from '../program/build-info.ts';
import type { Service } from '../service.ts';
import { systemClock } from '../time/clock.ts';
import type { DataContext } from './command.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';

/** The longest wait at the end for a reader of the last lines. */
export const FLUSH_DEADLINE_MS = 2_000;

const PERCENT = 100;

/** The log of a server, and its file. */
export interface ServerLog {
  readonly log: AdjustableLog;
  /** Null where the log goes to standard output. */
  readonly log_file: LogFile | null;
  /** Writes the last lines of a file. Standard output is flushed after the data directory is released. */
  close(): Promise<void>;
}

/** Opens the log of a server. Rejects with `CommandFailed`. */
export async function openLog(options: ServeConfig): Promise<ServerLog> {
  const log_file = await openLogFile(options);
  const output = log_file === null ? standardOutput : new BoundedOutput(log_file);
  const log = createLog(options.logLevel, output, { has_client_address: options.logClientAddress });
  const close = async () => {
    if (log_file === null) return;
    await output.flush(FLUSH_DEADLINE_MS);
    await log_file.close();
  };
  return { log, log_file, close };
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
export async function openMetrics({ metricsPort }: ServeConfig): Promise<PrometheusMetrics | null> {
  if (metricsPort === undefined) return null;
  // Loaded only on request, because it slows the start by a tenth of a second.
  const { PrometheusMetrics } = await import('../observability/prometheus-metrics.ts');
  return new PrometheusMetrics({ ...buildInfo(), runtime: `bun ${Bun.version}` });
}

/** Opens the traces of `--otlp-endpoint`; undefined for none. */
export async function openTracing({
  otlpEndpoint: url,
  otlpHeaders: headers = {},
  tracePercent,
}: ServeConfig): Promise<Tracing | undefined> {
  if (url === undefined) return undefined;
  // Loaded only on request, as metrics are.
  const { OtlpTracing } = await import('../observability/otlp-tracing.ts');
  const instance_id = randomIdentifiers.id('process');
  return new OtlpTracing({
    url,
    headers,
    ratio: tracePercent / PERCENT,
    random: Math.random,
    version: PROGRAM_VERSION,
    instance_id,
    clock: systemClock,
  });
}

/** Opens the certificate of `--tls-cert`, which is read again when its files change; undefined for none. */
export async function openCertificate(
  { tlsCert, tlsKey }: ServeConfig,
  log: Pick<Log, 'info' | 'warn' | 'error'>,
  metrics: Pick<PrometheusMetrics, 'watchCertificate'> | null,
): Promise<Certificate | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const certificate = await inOneSentence([CertificateRefused], () =>
    Certificate.open({ certificate: tlsCert, key: tlsKey }),
  );
  warnOfValidity(certificate, log);
  metrics?.watchCertificate(() => certificate.validity.to_ms);
  certificate.watch({
    onReload: () => {
      log.info('new connections get the new TLS certificate');
      warnOfValidity(certificate, log);
    },
    onFailure: ({ message }) => log.error('the TLS certificate before stays', { reason: message }),
  });
  return certificate;
}

/** Warns of a certificate that clients refuse now. It is served all the same, because a clock may be wrong. */
export function warnOfValidity(
  { validity: { from_ms, to_ms } }: Pick<Certificate, 'validity'>,
  log: Pick<Log, 'warn'>,
): void {
  const now_ms = systemClock.now_ms();
  if (from_ms <= now_ms && now_ms < to_ms) return;
  log.warn('clients refuse the TLS certificate, because it is outside its validity: renew it', {
    valid_from: new Date(from_ms).toISOString(),
    valid_to: new Date(to_ms).toISOString(),
  });
}

/** Returns the backups of `--backup-every`; undefined for none. */
export function backupSchedule(
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
