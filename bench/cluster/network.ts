import type { PostgresPlace, PostgresServer } from '../../test/support/postgres.ts';
import { DatabaseAddress } from './database-address.ts';

/** The place of a process of the cluster. */
export type Place = Required<Pick<PostgresPlace, 'host' | 'inside'>> & Pick<PostgresPlace, 'port'>;

/** A node's way to the database. */
export interface DatabaseWay {
  /** The address to which the node connects, whichever server is the primary. */
  readonly host: string;
  readonly port: number;
  /** Cuts the way silently. */
  cut(): void;
  restore(): void;
}

/** The network of a cluster's processes. */
export interface Network {
  /** The description of the network. */
  readonly description: string;
  /** A new place for a node or a server. */
  place(kind: 'node' | 'database'): Place;
  databaseWay(node: Place): Promise<DatabaseWay>;
  /** Points the database's address to that server. */
  pointTo(server: PostgresServer): void;
  remove(): void;
}

/** A network at 127.0.0.1. A proxy for each node makes the cuts, and follows the primary. */
export class LoopbackNetwork implements Network {
  readonly description = 'loopback, with proxies before the database';
  readonly #addresses: DatabaseAddress[] = [];
  #target_port = 0;

  place(): Place {
    return { host: '127.0.0.1', inside: [] };
  }

  async databaseWay(): Promise<DatabaseWay> {
    const address = await DatabaseAddress.listen(this.#target_port);
    this.#addresses.push(address);
    return {
      host: '127.0.0.1',
      port: address.port,
      cut: () => address.cut(),
      restore: () => address.restore(),
    };
  }

  pointTo({ port }: PostgresServer): void {
    this.#target_port = port;
    for (const address of this.#addresses) address.pointTo(port);
  }

  remove(): void {
    for (const address of this.#addresses) address.close();
  }
}

const POSTGRES_PORT = 5432;
const FLOATING = 100;

interface Namespace extends Place {
  readonly name: string;
}

/**
 * A network namespace for each process, joined by bridges: one for clients, one for the database. A cut unplugs the
 * bridge's cable, and each end stays connected. The database's address is one that moves to the primary, so that a
 * server's keepalives reach the nodes themselves. Needs root and `ip`.
 */
export class NamespaceNetwork implements Network {
  readonly description = 'network namespaces, with a database address that moves';
  readonly #prefix = `t${process.pid}`;
  readonly #clients = `${this.#prefix}c`;
  readonly #database = `${this.#prefix}d`;
  readonly #namespaces: Namespace[] = [];
  readonly #subnet = `10.${64 + (process.pid % 128)}`;
  #floats_at: string | undefined;

  constructor() {
    for (const [bridge, net] of [
      [this.#clients, 0],
      [this.#database, 1],
    ] as const) {
      // The bridge has its own MAC. Otherwise it takes a port's, and changes it unnoticed when that port is cut.
      ip('link', 'add', bridge, 'address', `02:00:00:00:00:0${net}`, 'type', 'bridge');
      ip('address', 'add', `${this.#subnet}.${net}.1/24`, 'dev', bridge);
      ip('link', 'set', bridge, 'up');
    }
    process.once('exit', () => this.remove());
  }

  place(kind: 'node' | 'database'): Place {
    const number = 11 + this.#namespaces.length;
    const name = `${this.#prefix}n${number}`;
    ip('netns', 'add', name);
    const inside = ['ip', 'netns', 'exec', name];
    const host = `${this.#subnet}.${kind === 'node' ? 0 : 1}.${number}`;
    const port = kind === 'node' ? {} : { port: POSTGRES_PORT };
    const namespace = { name, inside, host, ...port };
    this.#namespaces.push(namespace);
    ip('-n', name, 'link', 'set', 'lo', 'up');
    this.#connect(name, number, this.#database, 1);
    if (kind === 'node') this.#connect(name, number, this.#clients, 0);
    return namespace;
  }

  databaseWay(node: Place): Promise<DatabaseWay> {
    const { name } = this.#namespaceAt(node.host);
    const cable = `${name}${DATABASE_END}`;
    return Promise.resolve({
      host: `${this.#subnet}.1.${FLOATING}`,
      port: POSTGRES_PORT,
      cut: () => ip('link', 'set', cable, 'nomaster'),
      restore: () => ip('link', 'set', cable, 'master', this.#database),
    });
  }

  pointTo(server: PostgresServer): void {
    const { name } = this.#namespaceAt(new URL(server.url('postgres')).hostname);
    const floating = `${this.#subnet}.1.${FLOATING}/24`;
    if (this.#floats_at !== undefined)
      ip('-n', this.#floats_at, 'address', 'del', floating, 'dev', `${this.#floats_at}${DATABASE_END}i`);
    ip('-n', name, 'address', 'add', floating, 'dev', `${name}${DATABASE_END}i`);
    this.#floats_at = name;
    // This replaces the announcement of a moved address.
    for (const one of this.#namespaces) ip('-n', one.name, 'neighbour', 'flush', 'all');
    ip('neighbour', 'flush', 'dev', this.#database);
  }

  remove(): void {
    for (const { name } of this.#namespaces.splice(0)) ip('netns', 'delete', name);
    for (const bridge of [this.#clients, this.#database])
      Bun.spawnSync(['ip', 'link', 'delete', bridge], { stdout: 'ignore', stderr: 'ignore' });
  }

  #connect(name: string, number: number, bridge: string, net: 0 | 1): void {
    const outer = `${name}${net === 0 ? CLIENTS_END : DATABASE_END}`;
    const inner = `${outer}i`;
    ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner);
    ip('link', 'set', inner, 'netns', name);
    ip('link', 'set', outer, 'master', bridge, 'up');
    ip('-n', name, 'address', 'add', `${this.#subnet}.${net}.${number}/24`, 'dev', inner);
    ip('-n', name, 'link', 'set', inner, 'up');
  }

  #namespaceAt(host: string): Namespace {
    const found = this.#namespaces.find((one) => one.host === host);
    if (found === undefined) throw new Error(`nothing is at ${host}`);
    return found;
  }
}

const CLIENTS_END = 'c';
const DATABASE_END = 'd';

function ip(...args: readonly string[]): void {
  const { success, stderr } = Bun.spawnSync(['ip', ...args], { stdout: 'ignore', stderr: 'pipe' });
  if (!success) throw new Error(`ip ${args.join(' ')}: ${stderr.toString()}`);
}

/** Returns true if this process may create and join network namespaces. */
export function hasNamespaces(): boolean {
  if (Bun.which('ip') === null) return false;
  const name = `t${process.pid}p`;
  const done = [
    ['netns', 'add', name],
    ['link', 'add', `${name}b`, 'type', 'bridge'],
    ['link', 'add', `${name}o`, 'type', 'veth', 'peer', 'name', `${name}i`, 'netns', name],
    ['link', 'delete', `${name}o`],
    ['link', 'delete', `${name}b`],
    ['netns', 'delete', name],
  ].map((args) => Bun.spawnSync(['ip', ...args], { stdout: 'ignore', stderr: 'ignore' }).success);
  return done.every(Boolean);
}
