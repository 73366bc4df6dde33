/**
 * Measures the time of one decision outside of the model (`service-processing-ms` minus `latency_ms`) under autocannon
 * with 1, 16 and 64 connections. With the real engine and several connections it is mostly the wait in the model's queue.
 * A server with the real engine and one with an instant engine alternate.
 *
 *   bun bench/platform.ts [seconds a run, default 10]
 */

import autocannon from 'autocannon';
import { THREADS } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { type ServiceProcess, startServiceProcess } from './support/service-process.ts';
import { quantile, report, rounded } from './support/statistics.ts';

const CONNECTIONS = [1, 16, 64];
const duration_s = Number(process.argv[2] ?? 10);

interface Times {
  readonly outside_ms: number[];
  readonly latency_ms: number[];
  failures: number;
}

async function load(service: ServiceProcess, connections: number, seconds: number): Promise<Times> {
  const times: Times = { outside_ms: [], latency_ms: [], failures: 0 };
  await autocannon({
    url: service.address,
    connections,
    duration: seconds,
    timeout: 120,
    requests: [
      {
        method: 'POST',
        path: '/v1/decisions',
        headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(FIVE_QUESTIONS),
        onResponse: (status, body, _context, headers) => {
          const processing_ms = Number(new Map(Object.entries(headers ?? {})).get('service-processing-ms'));
          if (status !== 200) {
            times.failures += 1;
            return;
          }
          const { latency_ms }: { latency_ms: number } = JSON.parse(body);
          times.outside_ms.push(processing_ms - latency_ms);
          times.latency_ms.push(latency_ms);
        },
      },
    ],
  });
  return times;
}

const services = {
  instant: await startServiceProcess('instant', THREADS),
  real: await startServiceProcess('real', THREADS),
};
try {
  for (const connections of CONNECTIONS) {
    for (const [engine, service] of Object.entries(services)) {
      await load(service, connections, 1);
      const times = await load(service, connections, duration_s);
      report({
        bench: 'platform',
        engine,
        connections,
        threads: THREADS,
        requests: times.outside_ms.length,
        failures: times.failures,
        requests_per_s: rounded(times.outside_ms.length / duration_s),
        outside_median_ms: rounded(quantile(times.outside_ms, 0.5)),
        outside_p99_ms: rounded(quantile(times.outside_ms, 0.99)),
        latency_median_ms: rounded(quantile(times.latency_ms, 0.5)),
      });
    }
  }
} finally {
  await services.instant.stop();
  await services.real.stop();
}
