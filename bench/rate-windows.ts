/**
 * Measures latency and throughput of admissions to the rate windows in PostgreSQL, as in the service. The loads are 1,
 * 16 and 64 callers a node without pauses, and 1,000 requests a second over all nodes. There are 1 or 2 nodes
 * (processes), and 1 or 1,000 organizations. Every request is settled without a wait.
 *
 *   bun bench/rate-windows.ts [--rounds 5] [--seconds 1]
 *
 * Needs PostgreSQL (`apt-get install postgresql`). All run on this machine, and share its cores. Prints a JSON line
 * for each case: medians over the rounds, the median of the best round, and the server's CPU time for an admission with
 * its settlement. Other work on the machine affects the last two least.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connectPostgres } from '../db/postgres/connection.ts';
import { bringUpToDate } from '../db/postgres/migrate.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { cpuTime_ms } from './support/cpu-time.ts';
import type { Measured, Task } from './support/rate-windows-node.ts';
import { median, quantile, report, rounded } from './support/statistics.ts';

const NODES = [1, 2];
/** Callers a node, and their total requests a second; null for as many as possible. */
const LOADS = [
  { callers: 1, offered_a_second: null },
  { callers: 16, offered_a_second: null },
  { callers: 64, offered_a_second: null },
  { callers: 64, offered_a_second: 1_000 },
] as const;
const ORGANIZATIONS = [1, 1_000];

interface Node {
  work(task: Task): Promise<Measured>;
  end(): void;
}

async function startNode(url: string): Promise<Node> {
  let receive: (message: Measured) => void = () => undefined;
  const ready = Promise.withResolvers<void>();
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dirname, 'support/rate-windows-node.ts'), url],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: (message: Measured | 'ready') => (message === 'ready' ? ready.resolve() : receive(message)),
    },
  );
  await Promise.race([
    ready.promise,
    child.exited.then((code) => Promise.reject(new Error(`a node ended with ${code}`))),
  ]);
  return {
    work: (task) =>
      new Promise((resolve) => {
        receive = resolve;
        child.send(task);
      }),
    end: () => child.kill(),
  };
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '1' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const server = await startPostgres({ shared_buffers: '256MB', autovacuum: 'on' });
const nodes: Node[] = [];
try {
  const postgres_url = server.url('postgres');
  const connection = await connectPostgres(postgres_url, { connections: 1 });
  await bringUpToDate(connection.db);
  await connection.close();
  for (const _ of Array.from({ length: Math.max(...NODES) })) nodes.push(await startNode(postgres_url));
  const postmaster = Number(
    readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
  for (const organizations of ORGANIZATIONS) {
    for (const count of NODES) {
      for (const { callers, offered_a_second } of LOADS) {
        const interval_ms = offered_a_second === null ? 0 : (1_000 * callers * count) / offered_a_second;
        const medians: number[] = [];
        const p99s: number[] = [];
        const rates: number[] = [];
        const cpu_us: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
          const task = { callers, interval_ms, organizations, seconds };
          const before_ms = cpuTime_ms(postmaster);
          const measured = await Promise.all(nodes.slice(0, count).map((node) => node.work(task)));
          const latencies_ms = measured.flatMap((one) => one.latencies_ms);
          medians.push(median(latencies_ms));
          p99s.push(quantile(latencies_ms, 0.99));
          rates.push(latencies_ms.length / seconds);
          cpu_us.push(((cpuTime_ms(postmaster) - before_ms) * 1_000) / latencies_ms.length);
        }
        report({
          organizations,
          nodes: count,
          callers_a_node: callers,
          offered_a_second,
          median_ms: rounded(median(medians)),
          quietest_median_ms: rounded(Math.min(...medians)),
          p99_ms: rounded(median(p99s)),
          admissions_a_second: rounded(median(rates)),
          server_cpu_us: rounded(median(cpu_us)),
        });
      }
    }
  }
} finally {
  for (const node of nodes) node.end();
  await server.remove();
}
