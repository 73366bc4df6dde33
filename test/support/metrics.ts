import { type MetricsListener, startMetricsListener } from '../../src/http/metrics-listener.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { startTestService, type TestService, type TestServiceOptions } from './service.ts';

/** A real service whose metrics are read through their own port. */
export interface WatchedService {
  readonly service: TestService;
  readonly metrics: PrometheusMetrics;
  readonly listener: MetricsListener;
  /** The text of the metrics as it comes over the port. */
  scrape(): Promise<string>;
  /** The value of one series, written as in the text; 0 where it is not there. */
  value(series: string): Promise<number>;
  close(): Promise<void>;
}

export async function startWatchedService(options: TestServiceOptions = {}): Promise<WatchedService> {
  const metrics = new PrometheusMetrics({ version: '1.2.3', commit: 'abc', runtime: 'test' });
  const service = await startTestService({ ...options, metrics });
  const listener = await startMetricsListener(
    metrics,
    { host: '127.0.0.1', port: 0 },
    service.service.services.problems,
  );
  const scrape = async () => (await fetch(listener.url)).text();
  return {
    service,
    metrics,
    listener,
    scrape,
    value: async (series) => metricIn(await scrape(), series),
    async close() {
      metrics.close();
      await listener.stop();
      await service.close();
    },
  };
}

/** The value of a series in Prometheus' text; 0 where it is not there. */
export function metricIn(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** The lines of all series of a metric, without comments. */
export function seriesOf(text: string, name: string): readonly string[] {
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}
