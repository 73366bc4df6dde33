import { join } from 'node:path';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { SqliteDatabase } from '../../db/sqlite/sqlite-database.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { openPlanner } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { initialize } from '../../src/cli/initialize.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { startMetricsListener } from '../../src/http/metrics-listener.ts';
import { startServer } from '../../src/http/server.ts';
import { createLog } from '../../src/log/log.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { openService } from '../../src/service.ts';
import { systemClock } from '../../src/time/clock.ts';
import { instantEngine } from '../../test/support/instant-engine.ts';

const [kind, threads, directory, watching] = process.argv.slice(2);
if (directory === undefined)
  throw new Error('usage: service-child.ts real|instant THREADS DIRECTORY [watched]');

const db = openDatabase(join(directory, 'tds.sqlite'));
const context = { store: new SqliteStore(db), clock: systemClock, identifiers: randomIdentifiers };
const first = await initialize(context);
if (first === null) throw new Error('the directory must be empty');
const { organization_id } = first;
await creditByHand(context, OPERATOR, { organization_id, amount_micros: 1_000 * MICROS_PER_DOLLAR });
await setTierSettings(context, OPERATOR, organization_id, {
  requests_per_minute: 1e9,
  tokens_per_minute: 1e12,
});

const metrics =
  watching === 'watched' ? new PrometheusMetrics({ version: '0', commit: '0', runtime: 'bench' }) : null;
const service = await openService({
  database: new SqliteDatabase(db),
  openPlanner: async () => {
    const planner = await openPlanner({ gpu: false, threads: Number(threads) });
    if (kind !== 'instant') return planner;
    return {
      plan: (input) => planner.plan(input),
      openEngine: async () => instantEngine(await planner.openEngine()),
      close: () => planner.close(),
    };
  },
  idle_unload_ms: 0,
  clock: systemClock,
  identifiers: randomIdentifiers,
  log: createLog('error'),
  payment_provider: null,
  own_url: () => server.address,
  metrics: metrics ?? undefined,
});
await service.loadModels();
const server = await startServer(service, { host: '127.0.0.1', port: 0 });
const listener =
  metrics === null
    ? null
    : await startMetricsListener(metrics, { host: '127.0.0.1', port: 0 }, service.services.problems);
const metrics_url = listener?.url ?? null;
process.stdout.write(`${JSON.stringify({ address: server.address, key: first.key, metrics_url })}\n`);

process.once('SIGTERM', async () => {
  await server.stop();
  await listener?.stop();
  await service.close();
  db.$client.close();
});
