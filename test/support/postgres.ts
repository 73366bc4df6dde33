import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SQL } from 'bun';
import { connectPostgres, type PgConnection, type PgOptions } from '../../db/postgres/connection.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { guardFolder } from './guard-folder.ts';
import { madeOnce } from './made-once.ts';

/** Where Debian puts the programs of each version. */
const DEBIAN_FOLDER = '/usr/lib/postgresql';
/** PostgreSQL refuses to run as root. */
const UNPRIVILEGED_USERS = ['postgres', 'nobody'];
const USER = 'tds';
const PASSWORD = 'secret of the tests';
const TEMPLATE = 'tds_template';
const START_ATTEMPTS = 5;
/** Below all ports that Linux, macOS and Bun's `port: 0` give to connections and servers. */
const FIRST_PORT = 20_000;
const PORTS = 12_000;

/** The settings of a test's server. It stays durable, as the service demands. */
const SETTINGS = {
  max_connections: 300,
  shared_buffers: '32MB',
  // A test that waits for a lock for ever fails by its own deadline; the deadlock is what is looked for at once.
  deadlock_timeout: '100ms',
  log_min_messages: 'warning',
  // Databases of tests are small and short-lived; benches and the cluster under load turn it on.
  autovacuum: 'off',
};

/** The folder of PostgreSQL's programs, of the newest version; null where the server is not installed. */
function postgresPrograms(): string | null {
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER) : [];
  const [newest] = versions
    .sort((left, right) => Number(right) - Number(left))
    .map((version) => join(DEBIAN_FOLDER, version, 'bin'))
    .filter((folder) => existsSync(join(folder, 'initdb')));
  const initdb = Bun.which('initdb');
  return newest ?? (initdb === null ? null : join(initdb, '..'));
}

/** Returns true if PostgreSQL is not installed, for `describe.skipIf`. Fails instead if `CI` is set. */
export function isPostgresMissing(): boolean {
  if (postgresPrograms() !== null) return false;
  if (process.env.CI !== undefined)
    throw new Error('PostgreSQL is not installed: apt-get install postgresql.');
  console.warn('SKIPPED: tests of PostgreSQL, which is not installed (apt-get install postgresql).');
  return true;
}

/** A PostgreSQL server with a folder of its own. It ends with this process, however that ends. */
export interface PostgresServer {
  readonly port: number;
  /** Its data, log and unix socket. */
  readonly folder: string;
  /** The address of a database, by TCP with a password (the default) or by the unix socket. */
  url(database: string, way?: 'tcp' | 'socket'): string;
  /** The arguments that run one of PostgreSQL's programs as the server's user. */
  command(program: string, ...args: readonly string[]): string[];
  /** Starts it again after `stop`, on the same port. */
  start(): Promise<void>;
  /** `fast` cuts all connections; `immediate` is a crash. */
  stop(mode: 'fast' | 'immediate'): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}

/** A database of its own, with the service's schema; dropped by `await using`. */
export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** Connects to it; the connection is closed before the database is dropped. */
  connect(options?: PgOptions): Promise<PgConnection>;
  /** Closes these connections. */
  disconnect(): Promise<void>;
}

/** Runs a program to its end; throws what it says when it fails. */
async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', cwd: '/' });
  const [code, output, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${output}${errors}`);
}

/** The user that the server runs as, with the arguments that become it; none where this process is not root. */
function serverUser(): { readonly prefix: readonly string[]; readonly own: (path: string) => void } {
  if (process.getuid?.() !== 0) return { prefix: [], own: () => undefined };
  for (const name of UNPRIVILEGED_USERS) {
    const { stdout, success } = Bun.spawnSync(['id', '-u', name]);
    if (!success) continue;
    const uid = Number(stdout.toString());
    return {
      prefix: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'],
      own: (path) => chownSync(path, uid, uid),
    };
  }
  throw new Error('There is no unprivileged user to run PostgreSQL as.');
}

/**
 * Returns a free port outside the system's ephemeral range, so that it is still free when a stopped server restarts.
 */
function freePort(): number {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).stop(true);
      return port;
    } catch (error) {
      if (systemErrorCode(error) !== 'EADDRINUSE') throw error;
    }
  }
}

/** Where a server runs, and what it is a copy of. */
export interface PostgresPlace {
  /** The address to listen at. Clients of other machines need a password. */
  readonly host?: string;
  /** A free one by default. */
  readonly port?: number;
  /** A command that runs its programs there, such as that of a network namespace. */
  readonly inside?: readonly string[];
  /** The server that it is a standby of, by streaming replication under the name `standby`. */
  readonly primary?: PostgresServer;
}

/** Arguments of initdb, besides the folder and the password. */
const INITDB = [
  ...['--username', USER, '--no-sync', '--auth-local', 'trust', '--auth-host', 'scram-sha-256'],
  ...['--encoding', 'UTF8', '--locale', 'C'],
];
const HOST_RULES = ['all', 'replication'].map((database) => `host ${database} all samenet scram-sha-256\n`);

/** The folder of an empty cluster of the server's user, to be copied: initdb takes twice the time of the copy. */
async function emptyCluster(programs: string): Promise<string> {
  const { prefix, own } = serverUser();
  const version = Bun.spawnSync([join(programs, 'postgres'), '--version']).stdout.toString();
  // initdb writes the time zone into the configuration.
  const made_of = [version, process.env.TZ, process.getuid?.(), prefix, PASSWORD, INITDB, HOST_RULES];
  const made = await madeOnce('postgres', made_of, async (made) => {
    // The server's user may not be allowed into the checkout.
    const folder = mkdtempSync(join(tmpdir(), 'tds-initdb-'));
    try {
      own(folder);
      const [data, password_file] = [join(folder, 'data'), join(folder, 'password')];
      writeFileSync(password_file, `${PASSWORD}\n`);
      own(password_file);
      const initdb = [...prefix, join(programs, 'initdb'), '--pgdata', data, '--pwfile', password_file];
      await run([...initdb, ...INITDB]);
      appendFileSync(join(data, 'pg_hba.conf'), HOST_RULES.join(''));
      await run(['cp', '-Rp', data, made]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
  return join(made, 'data');
}

/** Starts a new server with an empty cluster, or a standby; `settings` are added to its configuration. */
export async function startPostgres(
  settings: Readonly<Record<string, string | number>> = {},
  { host = '127.0.0.1', port: given_port, inside = [], primary }: PostgresPlace = {},
): Promise<PostgresServer> {
  const programs = postgresPrograms();
  if (programs === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql.');
  const { prefix, own } = serverUser();
  const command = (program: string, ...args: readonly string[]) => [
    ...inside,
    ...prefix,
    join(programs, program),
    ...args,
  ];
  const folder = mkdtempSync(join(tmpdir(), 'tds-postgres-'));
  own(folder);
  const data = join(folder, 'data');
  // Not inside of the place, which may be gone before the server.
  const stopArgs = (mode: string) => [
    ...[...prefix, join(programs, 'pg_ctl'), 'stop', '--wait'],
    ...['--mode', mode, '--pgdata', data],
  ];
  const endGuard = guardFolder(folder, stopArgs('immediate'));
  const remove = async () => {
    // A server that was stopped already cannot be stopped.
    await run(stopArgs('immediate')).catch(() => undefined);
    rmSync(folder, { recursive: true, force: true });
    endGuard();
  };
  try {
    if (primary === undefined) await run(['cp', '-Rp', await emptyCluster(programs), data]);
    else {
      const source = new URL(primary.url('postgres'));
      source.searchParams.set('application_name', 'standby');
      await run(
        command(
          'pg_basebackup',
          ...['--pgdata', data, '--dbname', source.href, '--write-recovery-conf', '--checkpoint', 'fast'],
        ),
      );
    }
    let port = given_port ?? freePort();
    const start = () => {
      const options = Object.entries({
        ...SETTINGS,
        listen_addresses: host,
        port,
        unix_socket_directories: folder,
        ...settings,
      }).map(([name, value]) => `-c ${name}='${value}'`);
      const log = join(folder, 'log');
      return run(
        command('pg_ctl', 'start', '--wait', '--pgdata', data, '--log', log, '--options', options.join(' ')),
      );
    };
    for (let attempt = 1; ; attempt += 1) {
      try {
        await start();
        break;
      } catch (error) {
        // Somebody else may have taken the port in between.
        if (attempt === START_ATTEMPTS || given_port !== undefined) throw error;
        port = freePort();
      }
    }
    return {
      get port() {
        return port;
      },
      folder,
      url: (database, way = 'tcp') =>
        way === 'tcp'
          ? `postgres://${USER}:${encodeURIComponent(PASSWORD)}@${host}:${port}/${database}`
          : `postgres://${USER}@localhost:${port}/${database}?path=${encodeURIComponent(folder)}`,
      command,
      start,
      stop: (mode) => run(stopArgs(mode)),
      remove,
    };
  } catch (error) {
    const log = join(folder, 'log');
    const text = existsSync(log) ? await Bun.file(log).text() : '';
    await remove();
    throw new Error(`PostgreSQL does not start: ${text}`, { cause: error });
  }
}

let shared: Promise<PostgresServer> | undefined;
let databases = 0;

/** The one server of this test process, with the template of `testDatabase`. */
export function sharedPostgres(): Promise<PostgresServer> {
  shared ??= startWithTemplate();
  return shared;
}

async function startWithTemplate(): Promise<PostgresServer> {
  const server = await startPostgres();
  // A language's order of letters, so that a query which leaves the order to the server does not pass by chance.
  await administer(
    server,
    `CREATE DATABASE ${TEMPLATE} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`,
  );
  const connection = await connectPostgres(server.url(TEMPLATE), { connections: 1 });
  await bringUpToDate(connection.db);
  await connection.close();
  return server;
}

/** Runs one statement outside of every test's database. */
export async function administer(server: PostgresServer, statement: string): Promise<void> {
  const client = new SQL({ url: server.url('postgres', 'socket'), max: 1 });
  try {
    await client.unsafe(statement);
  } finally {
    await client.close({ timeout: 0 });
  }
}

/** A new database on the process's server: with the service's schema, or without any table. */
export async function testDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const server = await sharedPostgres();
  databases += 1;
  const name = `test_${databases}`;
  await administer(server, `CREATE DATABASE ${name} TEMPLATE ${empty ? 'template0' : TEMPLATE}`);
  const connections: PgConnection[] = [];
  const url = server.url(name);
  const disconnect = async () => {
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
  };
  return {
    name,
    url,
    connect: async (options) => {
      const connection = await connectPostgres(url, options);
      connections.push(connection);
      return connection;
    },
    disconnect,
    [Symbol.asyncDispose]: async () => {
      await disconnect();
      await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}
