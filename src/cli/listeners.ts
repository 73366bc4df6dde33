import type { ConnectionConfig, ServeConfig } from '../config/settings.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import type { Certificate } from '../http/certificate.ts';
import { descriptorLimit, openDescriptors } from '../http/file-descriptors.ts';
import { ListenRefused } from '../http/listen.ts';
import { type MetricsListener, startMetricsListener } from '../http/metrics-listener.ts';
import { type ConnectionBounds, type RunningServer, startServer } from '../http/server.ts';
import type { Log } from '../log/log.ts';
import type { BackupSchedule } from '../maintenance/backup-schedule.ts';
import type { PrometheusMetrics } from '../observability/prometheus-metrics.ts';
import type { Service } from '../service.ts';
import type { JsonOptions } from './command.ts';
import { inOneSentence } from './command-failed.ts';
import { type ReloadListener, startReloadListener } from './reload-socket.ts';
import { modelStates } from './served-models.ts';

/** Returns the bounds of the connections. */
export function connectionBounds(config: ConnectionConfig): ConnectionBounds {
  return {
    connection_limit: config.connectionLimit,
    connection_limit_per_address: config.connectionLimitPerAddress,
  };
}

/** Opens the port of the service. Rejects with `CommandFailed` where it cannot listen. */
export async function listen(
  service: Service,
  config: ServeConfig,
  certificate: Certificate | undefined,
): Promise<RunningServer> {
  const { host, port } = config;
  const options = {
    ...connectionBounds(config),
    client_address_header: config.clientAddressHeader,
    certificate,
    drain_ms: config.drainSeconds * 1_000,
  };
  return await inOneSentence([ListenRefused], () => startServer(service, { host, port }, options));
}

/** Opens the port of `--metrics-port`; null for none. Rejects with `CommandFailed` where it cannot listen. */
export async function listenForMetrics(
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
  return await inOneSentence([ListenRefused], () => startMetricsListener(metrics, { host, port }, problems));
}

/**
 * Receives the requests of `tds model reload` and `tds key revoke`. Returns null where the socket cannot be
 * created, because the server works without it.
 */
export async function listenForReloads(
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
