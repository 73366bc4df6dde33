/**
 * Measures latency and throughput of admissions to the rate windows: in PostgreSQL as in the service, and in Redis or
 * Valkey by a script with the same rules, through Bun's client. The loads are 1, 16 and 64 callers a node without
 * pauses, and 1,000 requests a second over all nodes. There are 1 or 2 nodes (processes), and 1 or 1,000 organizations.
 * The stores alternate, and every request is settled without a wait.
 *
 *   bun bench/rate-windows.ts [--rounds 5] [--seconds 1]
 *
 * Needs PostgreSQL (`apt-get install postgresql`). It also measures Valkey if `valkey-server` is on the PATH (Debian
 * 13), else Redis if `redis-server` is (Debian 12). All run on this machine, and share its cores. Prints a JSON line
 * for each case: medians over the rounds, the median of the best round, and the server's CPU time for an admission with
 * its settlement. Other work on the machine affects the last two least.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
const REDIS_SERVERS = ['valkey-server', 'redis-server'];

interface Node {
  work(task: Task): Promise<Measured>;
  end(): void;
}

interface Redis {
  /** The program with its version. */
  readonly name: string;
  readonly pid: number;
  readonly url: string;
  end(): void;
}

async function startNode(urls: readonly string[]): Promise<Node> {
  let receive: (message: Measured) => void = () => undefined;
  const ready = Promise.withResolvers<void>();
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dirname, 'support/rate-windows-node.ts'), ...urls],
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

/** Starts a server without persistence on a free port; null if none is installed. */
async function startRedis(): Promise<Redis | null> {
  const program = REDIS_SERVERS.find((one) => Bun.which(one) !== null);
  if (program === undefined) return null;
  const version = / v=(\S+)/.exec(Bun.spawnSync([program, '--version']).stdout.toString())?.[1];
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } });
  const { port } = listener;
  listener.stop(true);
  const directory = mkdtempSync(join(tmpdir(), 'tds-redis-'));
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory];
  const child = Bun.spawn([program, ...settings], { stdout: 'pipe', stderr: 'inherit' });
  const end = () => {
    child.kill();
    rmSync(directory, { recursive: true, force: true });
  };
  let said = '';
  for await (const chunk of child.stdout) {
    said += new TextDecoder().decode(chunk);
    if (said.includes('Ready to accept')) break;
  }
  if (!said.includes('Ready to accept')) {
    end();
    throw new Error(`${program} did not start: ${said}`);
  }
  return { name: `${program} ${version}`, pid: child.pid, url: `redis://127.0.0.1:${port}`, end };
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '1' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const server = await startPostgres({ shared_buffers: '256MB', autovacuum: 'on' });
const redis = await startRedis();
const nodes: Node[] = [];
try {
  const postgres_url = server.url('postgres');
  const connection = await connectPostgres(postgres_url, { connections: 1 });
  await bringUpToDate(connection.db);
  await connection.close();
  for (const _ of Array.from({ length: Math.max(...NODES) }))
    nodes.push(await startNode([postgres_url, redis?.url ?? '']));
  const postmaster = Number(
    readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
  const stores = redis === null ? (['postgres'] as const) : (['postgres', 'redis'] as const);
  for (const organizations of ORGANIZATIONS) {
    for (const count of NODES) {
      for (const { callers, offered_a_second } of LOADS) {
        const interval_ms = offered_a_second === null ? 0 : (1_000 * callers * count) / offered_a_second;
        const results = new Map(
          stores.map((store) => [
            store,
            { medians: [] as number[], p99s: [] as number[], rates: [] as number[], cpu_us: [] as number[] },
          ]),
        );
        for (let round = 0; round < rounds; round += 1) {
          for (const [store, { medians, p99s, rates, cpu_us }] of results) {
            const task = { store, callers, interval_ms, organizations, seconds };
            const pid = store === 'redis' ? (redis?.pid ?? 0) : postmaster;
            const before_ms = cpuTime_ms(pid);
            const measured = await Promise.all(nodes.slice(0, count).map((node) => node.work(task)));
            const latencies_ms = measured.flatMap((one) => one.latencies_ms);
            medians.push(median(latencies_ms));
            p99s.push(quantile(latencies_ms, 0.99));
            rates.push(latencies_ms.length / seconds);
            cpu_us.push(((cpuTime_ms(pid) - before_ms) * 1_000) / latencies_ms.length);
          }
        }
        for (const [store, { medians, p99s, rates, cpu_us }] of results)
          report({
            store: store === 'redis' ? redis?.name : store,
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
  redis?.end();
  await server.remove();
}
