/**
 * Measures the cost of metrics: the server's processor time a decision, with an instant engine and 16 connections.
 * Servers without metrics, with unread metrics, and with metrics read every second alternate.
 *
 *   bun bench/metrics.ts [rounds, default 7] [seconds a run, default 5]
 */

import autocannon from 'autocannon';
import { cpuTime_ms } from './support/cpu-time.ts';
import { THREADS } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { type ServiceProcess, startServiceProcess } from './support/service-process.ts';
import { median, report, rounded } from './support/statistics.ts';

const CONNECTIONS = 16;
const SCRAPE_MS = 1_000;
const rounds = Number(process.argv[2] ?? 7);
const duration_s = Number(process.argv[3] ?? 5);

/** Returns the microseconds of the server's processor time a decision. */
async function load(service: ServiceProcess, seconds: number, is_read: boolean): Promise<number> {
  const { metrics_url } = service;
  const reader =
    is_read && metrics_url !== null
      ? setInterval(() => void fetch(metrics_url).then((response) => response.arrayBuffer()), SCRAPE_MS)
      : undefined;
  const before_ms = cpuTime_ms(service.pid);
  const { '2xx': answered } = await autocannon({
    url: `${service.address}/v1/decisions`,
    connections: CONNECTIONS,
    duration: seconds,
    method: 'POST',
    headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(FIVE_QUESTIONS),
  });
  const taken_us = (cpuTime_ms(service.pid) - before_ms) * 1_000;
  clearInterval(reader);
  return taken_us / answered;
}

const plain = await startServiceProcess('instant', THREADS);
const watched = await startServiceProcess('instant', THREADS, 'watched');
const kinds = [
  ['without', plain, false],
  ['unread', watched, false],
  ['read', watched, true],
] as const;
const times = new Map<string, number[]>(kinds.map(([kind]) => [kind, []]));
try {
  for (const [, service] of kinds) await load(service, 2, false);
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, service, is_read] of round % 2 === 0 ? kinds : kinds.toReversed()) {
      times.get(kind)?.push(await load(service, duration_s, is_read));
    }
  }
  const base_us = median(times.get('without') ?? []);
  for (const [kind, of_kind] of times) {
    report({
      bench: 'metrics',
      metrics: kind,
      cpu_us_per_decision: rounded(median(of_kind)),
      ratio: rounded(median(of_kind) / base_us),
      rounds: of_kind.map(rounded),
    });
  }
} finally {
  await plain.stop();
  await watched.stop();
}
