import { join } from 'node:path';
import { connectPostgres } from '../../db/postgres/connection.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { administer, startPostgres } from '../../test/support/postgres.ts';
import { benchAccount, CREDIT_MICROS, type Pairs } from './ledger-pairs.ts';
import { linesOf } from './lines-of.ts';

interface NodePairs extends Pairs {
  readonly writes_a_commit: number;
}

/** A node in its own process. */
class BenchNode {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  readonly #lines: AsyncIterator<string>;

  constructor(url: string, id: string) {
    this.#child = Bun.spawn([process.execPath, join(import.meta.dir, 'ledger-bench-child.ts'), url, id], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    this.#lines = linesOf(this.#child.stdout);
  }

  async measure(callers: number, organizations: number, duration_ms: number): Promise<NodePairs> {
    this.#child.stdin.write(`${callers} ${organizations} ${duration_ms}\n`);
    await this.#child.stdin.flush();
    const { value } = await this.#lines.next();
    return JSON.parse(String(value));
  }

  async end(): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** A PostgreSQL server for the bench, and nodes in their own processes. */
interface PostgresBench {
  /** Measures the nodes together. Each has its part of the callers. */
  measure(nodes: number, callers: number, organizations: number, duration_ms: number): Promise<NodePairs>;
  close(): Promise<void>;
}

/** Starts the server with this machine's programs, and the nodes on it. */
export async function startPostgresBench(nodes: number, organizations: number): Promise<PostgresBench> {
  const server = await startPostgres({ shared_buffers: '128MB', autovacuum: 'on' });
  await administer(server, 'CREATE DATABASE bench');
  const url = server.url('bench');
  const { db, close } = await connectPostgres(url, { connections: 1 });
  await bringUpToDate(db);
  const numbers = `generate_series(0, ${organizations - 1}) AS number`;
  const { organization_id, project_id, api_key_id } = benchAccount(0);
  const named = (first: string) => `'${first.slice(0, -1)}' || number`;
  for (const statement of [
    `INSERT INTO organizations (id, name, created_at_ms, credit_micros, paid_micros, first_paid_at_ms)
      SELECT ${named(organization_id)}, 'Bench', 0, ${CREDIT_MICROS}, ${CREDIT_MICROS}, 0 FROM ${numbers}`,
    `INSERT INTO projects (id, organization_id, name, created_at_ms)
      SELECT ${named(project_id)}, ${named(organization_id)}, 'Default', 0 FROM ${numbers}`,
    `INSERT INTO api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms)
      SELECT ${named(api_key_id)}, ${named(project_id)}, 'Bench', lpad(number::text, 64, '0'), 'sk_svc_bench', 0
      FROM ${numbers}`,
  ])
    await db.$client.unsafe(statement);
  await db.$client.unsafe('ANALYZE');
  await close();
  const started = Array.from({ length: nodes }, (_, number) => new BenchNode(url, `proc_${number}`));
  return {
    async measure(count, callers, of_organizations, duration_ms) {
      const parts = await Promise.all(
        started.slice(0, count).map((node, number) => {
          const own = Math.floor(callers / count) + (number < callers % count ? 1 : 0);
          return node.measure(own, of_organizations, duration_ms);
        }),
      );
      const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
      return {
        pairs_per_s: parts.reduce((sum, { pairs_per_s }) => sum + pairs_per_s, 0),
        median_ms: mean(parts.map(({ median_ms }) => median_ms)),
        writes_a_commit: mean(parts.map(({ writes_a_commit }) => writes_a_commit)),
      };
    },
    async close() {
      await Promise.all(started.map((node) => node.end()));
      await server.remove();
    },
  };
}
