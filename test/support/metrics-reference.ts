import { join } from 'node:path';
import { type MetricFamily, PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { noProblems } from '../../src/problems/problems.ts';

/** The document of all metrics; `bun test/support/metrics-reference.ts` writes it. */
export const REFERENCE_FILE = join(import.meta.dir, '../../METRICS.md');

/** Every metric that a service can export, whatever its database and settings are. */
export function allMetrics(): readonly MetricFamily[] {
  const metrics = new PrometheusMetrics({ version: '0', commit: '0', runtime: '0' });
  const nobody = () => {
    throw new Error('nothing is asked');
  };
  metrics.watch({
    models: nobody,
    schedulerLoad: nobody,
    answerDrifts: nobody,
    books: { open: { holds: 0, oldest_at_ms: null }, unwritten: 0 },
    problems: { counts: noProblems },
    readiness: { failing: nobody },
    databaseState: nobody,
    unresolvedEvents: nobody,
    now_ms: nobody,
  });
  metrics.watchServer(nobody);
  metrics.watchCertificate(nobody);
  metrics.watchBackups(nobody);
  metrics.close();
  return metrics.families;
}

/** The document, in Markdown. */
export function metricsReference(): string {
  const rows = [...allMetrics()]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, type, labels, help }) => {
      const written = labels.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} | ${written} | ${help} |`;
    });
  return [
    '# Metrics',
    '',
    'Written by `bun test/support/metrics-reference.ts`. `--metrics-port` exports them for Prometheus at `/metrics`. A histogram has',
    'also `_bucket`, `_sum` and `_count`. No label holds what a client wrote, or the id of a customer: a value is one of few words,',
    "a path of the API, or a name that the operator gave. Organizations' own models are all `own`, but at `tds_answer_drift_index`,",
    'which has their ids while they are there. `tds install --prometheus` writes alerts on them, `--grafana` a dashboard.',
    '',
    '| metric | type | labels | what it is |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

if (import.meta.main) await Bun.write(REFERENCE_FILE, metricsReference());
