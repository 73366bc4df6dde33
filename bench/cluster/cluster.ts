import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { connectPostgres, type PgConnection } from '../../db/postgres/connection.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { PostgresStore } from '../../db/postgres/postgres-store.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { createOrganization, setTierSettings } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { systemClock } from '../../src/time/clock.ts';
import { ChildServer } from '../../test/support/child-server.ts';
import { administer, type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { temporaryDirectory } from '../../test/support/temporary-directory.ts';
import { Balancer } from './balancer.ts';
import type { DatabaseWay, Network, Place } from './network.ts';

const DATABASE = 'cluster';
const SETTINGS = {
  listen_addresses: '*',
  autovacuum: 'on',
  // The delay before a standby reconnects to its primary. Commits wait meanwhile.
  wal_retrieve_retry_interval: '200ms',
};

/** An organization of the load, and its limits. */
export interface ClusterOrganization {
  readonly id: string;
  readonly key: string;
  readonly credit_micros: number;
  readonly requests_per_minute: number;
  /** The refusal that its limits may cause. */
  readonly refusal: '402 insufficient_credit' | '429 rate_limit_exceeded' | null;
}

/** The limits of the load's organizations: some have none, one has little credit, one a rate limit. */
const ORGANIZATIONS = [
  { credit_micros: 1_000_000_000, requests_per_minute: 1_000_000, refusal: null },
  { credit_micros: 1_000_000_000, requests_per_minute: 1_000_000, refusal: null },
  { credit_micros: 10_000, requests_per_minute: 1_000_000, refusal: '402 insufficient_credit' },
  { credit_micros: 1_000_000_000, requests_per_minute: 120, refusal: '429 rate_limit_exceeded' },
] as const;

/** Options of a cluster. */
export interface ClusterOptions {
  /** True for a synchronous standby. */
  readonly has_standby: boolean;
  readonly network: Network;
}

/** A `tds serve` of the cluster, across its restarts. */
export class ClusterNode {
  server: ChildServer | undefined;
  /** Its name in the table `nodes`, which changes with each start. */
  id = '';

  constructor(
    readonly name: string,
    readonly directory: string,
    readonly place: Place,
    readonly database: DatabaseWay,
  ) {}

  get running(): ChildServer {
    if (this.server === undefined) throw new Error(`${this.name} does not run`);
    return this.server;
  }
}

/** Nodes on a PostgreSQL database behind a balancer, all on this machine. */
export class Cluster {
  readonly nodes: ClusterNode[] = [];
  organizations: readonly ClusterOrganization[] = [];
  readonly #root = temporaryDirectory();
  #servers: PostgresServer[] = [];
  #connection: PgConnection | undefined;

  private constructor(
    readonly balancer: Balancer,
    readonly network: Network,
  ) {}

  static async start(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(await Balancer.listen(), options.network);
    try {
      await cluster.#start(options);
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /** The primary server. */
  get primary(): PostgresServer {
    const [first] = this.#servers;
    if (first === undefined) throw new Error('there is no database');
    return first;
  }

  get hasStandby(): boolean {
    return this.#servers.length > 1;
  }

  get standby(): PostgresServer {
    const second = this.#servers[1];
    if (second === undefined) throw new Error('there is no standby');
    return second;
  }

  /** The database's address for other processes than nodes. */
  get database_url(): string {
    return this.primary.url(DATABASE);
  }

  /** Runs a statement on the primary, beside the nodes. */
  async query<Row>(statement: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    this.#connection ??= await connectPostgres(this.database_url, { connections: 1 });
    return await this.#connection.db.$client.unsafe<Row[]>(statement, [...parameters]);
  }

  /** Starts a stopped node, and adds it to the balancer. */
  async startNode(node: ClusterNode): Promise<void> {
    const url = new URL(this.database_url);
    const { host, port } = node.database;
    url.host = `${host}:${port}`;
    const flags = [
      ...['--database', url.href, '--host', node.place.host],
      ...['--console', 'off', '--log-level', 'warn'],
    ];
    const server = new ChildServer(node.directory, flags, { inside: node.place.inside });
    node.server = server;
    await server.ready();
    const others = this.nodes.filter((one) => one !== node).map(({ id }) => id);
    const [row] = await this.query<{ id: string }>(
      'SELECT id FROM nodes WHERE id <> $1 AND NOT id = ANY (ARRAY(SELECT jsonb_array_elements_text($2::text::jsonb))) ORDER BY started_at DESC LIMIT 1',
      [node.id, JSON.stringify(others)],
    );
    if (row === undefined) throw new Error(`${node.name} is not registered`);
    node.id = row.id;
    await this.balancer.setAddress(node.name, server.address);
  }

  /** Resolves with the number of a node's open holds. */
  async openHolds(node_id: string): Promise<number> {
    const [row] = await this.query<{ open: number }>(
      `SELECT count(*)::integer AS open FROM ledger_entries AS held WHERE kind = 'hold' AND process_id = $1
        AND NOT EXISTS (SELECT FROM ledger_entries AS ended WHERE ended.hold_entry_id = held.id)`,
      [node_id],
    );
    return row?.open ?? 0;
  }

  async isRegistered(node_id: string): Promise<boolean> {
    return (await this.query('SELECT id FROM nodes WHERE id = $1', [node_id])).length > 0;
  }

  /** Promotes the standby at the same address. Removes the old primary, which must not run any more. */
  async failOver(): Promise<void> {
    const { primary, standby } = this;
    await runToEnd(standby.command('pg_ctl', 'promote', '--wait', '--pgdata', join(standby.folder, 'data')));
    await this.#connection?.close();
    this.#connection = undefined;
    this.#servers = [standby];
    await primary.remove();
    this.network.pointTo(standby);
  }

  /** Adds a synchronous standby. */
  async addStandby(): Promise<void> {
    const { primary } = this;
    const place = this.network.place('database');
    this.#servers.push(await startPostgres(SETTINGS, { ...place, primary }));
    await administer(primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await administer(primary, 'SELECT pg_reload_conf()');
  }

  /** Stops every node as an operator does. Resolves with their exit codes. */
  async stopNodes(): Promise<readonly number[]> {
    return await Promise.all(
      this.nodes.map(({ running }) => {
        running.signal('SIGTERM');
        return running.ended();
      }),
    );
  }

  async remove(): Promise<void> {
    this.balancer.close();
    for (const { server } of this.nodes) await server?.kill();
    await this.#connection?.close();
    for (const server of this.#servers) await server.remove();
    this.network.remove();
    this.#root.remove();
  }

  async #start({ has_standby }: ClusterOptions): Promise<void> {
    const primary = await startPostgres(SETTINGS, this.network.place('database'));
    this.#servers.push(primary);
    this.network.pointTo(primary);
    await administer(primary, `CREATE DATABASE ${DATABASE}`);
    if (has_standby) await this.addStandby();
    await this.#addOrganizations();
    for (const name of ['node 1', 'node 2']) {
      const directory = join(this.#root.path, name);
      mkdirSync(directory, { mode: 0o700 });
      const place = this.network.place('node');
      const node = new ClusterNode(name, directory, place, await this.network.databaseWay(place));
      this.nodes.push(node);
      await this.startNode(node);
    }
  }

  async #addOrganizations(): Promise<void> {
    const { db, close } = await connectPostgres(this.database_url, { connections: 2 });
    await bringUpToDate(db);
    const context = { store: new PostgresStore(db), clock: systemClock, identifiers: randomIdentifiers };
    const organizations: ClusterOrganization[] = [];
    for (const given of ORGANIZATIONS) {
      const { id, default_project_id } = await createOrganization(context, OPERATOR, { name: 'Load' });
      const { credit_micros, requests_per_minute } = given;
      await creditByHand(context, OPERATOR, { organization_id: id, amount_micros: credit_micros });
      await setTierSettings(context, OPERATOR, id, {
        minimum_tier: 1,
        requests_per_minute,
        tokens_per_minute: 1_000_000_000,
      });
      const { key } = await createKey(context, OPERATOR, { project_id: default_project_id, name: 'Load' });
      organizations.push({ id, key, ...given });
    }
    this.organizations = organizations;
    await close();
  }
}

async function runToEnd(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', cwd: '/' });
  const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${errors}`);
}
