import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { isPostgres, withoutPassword } from '../config/database-address.ts';
import { settingOf, type Values } from '../config/settings.ts';
import { IS_UNPACKED, projectFile } from '../project-root.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { dataCommand } from './command.ts';
import { CommandFailed } from './command-failed.ts';
import { type DeploymentValues, fillTemplate, UnwritableValue } from './deployment-files.ts';
import { printLine } from './output.ts';
import { addSettings } from './settings.ts';

interface InstallOptions extends Values<'data' | 'database'> {
  readonly systemd?: true;
  readonly caddy?: true;
  readonly grafana?: true;
  readonly output: string;
  readonly force?: true;
  readonly executable?: string;
  readonly user: string;
  readonly host: string;
  readonly port: number;
  readonly drainSeconds: number;
  readonly domain?: string;
}

/** A file that is written, and what the operator does with it. */
interface Deployment {
  readonly template: string;
  readonly name: string;
  readonly next: readonly string[];
}

/** Where systemd keeps the data of a service of that name. */
const SERVICE_DATA = '/var/lib/tds';
/** What the unit reads secrets from. */
const SECRETS_FILE = '/etc/tds.env';
/** Ports below need a capability. */
const FREE_PORTS_FROM = 1_024;
/** What a stop takes at most after the requests in flight had their time. */
const STOP_SECONDS = 60;
/** Where a service that listens on every address is reached, by that address. */
const LOOPBACKS: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);
/** What the unit hides from the service. */
const HIDDEN = /^\/(home|root|run\/user|tmp|var\/tmp)\//;

/** `tds install` */
export function registerInstall(program: Command): void {
  const command = dataCommand(
    program,
    {
      usage: 'install',
      description:
        'write the files that run this program on this machine: a systemd unit, a Caddy file, a dashboard',
      example: 'tds install --systemd --caddy --domain decisions.example.com --output /tmp/tds',
    },
    ['data', 'database'],
  );
  addSettings(command, ['host', 'port', 'drainSeconds'])
    .option('--systemd', 'write tds.service, a hardened unit')
    .option('--caddy', 'write Caddyfile, a proxy with TLS; needs --domain')
    .option('--grafana', 'write tds-dashboard.json, a dashboard of the metrics')
    .option('--output <folder>', 'where the files are written', '.')
    .option('--force', 'replace files that are there')
    .option('--executable <path>', 'what the unit starts (default: this program)')
    .option('--user <name>', 'who the unit runs as', 'tds')
    .option('--domain <name>', 'what clients reach the service by')
    .action(install);
}

async function install(options: InstallOptions): Promise<void> {
  const values = valuesOf(options);
  const wanted = deployments(options, values);
  if (wanted.length === 0) throw new CommandFailed('Name what to write: --systemd, --caddy or --grafana.');
  if (options.caddy && options.domain === undefined) {
    throw new CommandFailed('Name what clients reach the service by with --domain.');
  }
  // All of them are made before one is written.
  const texts = await Promise.all(wanted.map(({ template }) => textOf(template, values)));
  for (const [index, { name, next }] of wanted.entries()) {
    const path = join(options.output, name);
    await write(path, texts[index] ?? '', options.force === true);
    printLine(`Wrote ${path}. Then:`);
    for (const line of next) printLine(`  ${line}`);
  }
}

/** This machine's values, for the files and for what is to be done with them. */
interface MachineValues extends DeploymentValues {
  readonly user: string;
  /** How this program is started, without arguments. */
  readonly program: readonly string[];
  readonly data: string;
  /** The address of PostgreSQL without its password; empty for SQLite. */
  readonly database: string;
  readonly domain: string;
}

function deployments(
  { systemd, caddy, grafana, output }: InstallOptions,
  { user, program, data, database, domain }: MachineValues,
): readonly Deployment[] {
  const written = (name: string) => Bun.$.escape(join(output, name));
  return [
    ...(systemd
      ? [
          {
            template: 'tds.service',
            name: 'tds.service',
            next: [
              `useradd --system --user-group --home-dir ${data} --shell /usr/sbin/nologin ${user}`,
              `install -d -m 700 -o ${user} -g ${user} ${data} /var/cache/tds`,
              ...initLines(user, `${program.join(' ')} init --data ${data}`, database),
              `install -m 644 ${written('tds.service')} /etc/systemd/system/tds.service`,
              'systemctl daemon-reload && systemctl enable --now tds',
            ],
          },
        ]
      : []),
    ...(caddy
      ? [
          {
            template: 'Caddyfile',
            name: 'Caddyfile',
            next: [
              `install -m 644 ${written('Caddyfile')} /etc/caddy/Caddyfile && systemctl reload caddy`,
              'let the service know of the proxy, such as in /etc/tds.env, and start it again:',
              '  TDS_CLIENT_ADDRESS_HEADER=X-Forwarded-For',
              `  TDS_PUBLIC_URL=${domain.includes('://') ? domain : `https://${domain}`}`,
            ],
          },
        ]
      : []),
    ...(grafana
      ? [
          {
            template: 'grafana-dashboard.json',
            name: 'tds-dashboard.json',
            next: ['import it in Grafana: Dashboards, New, Import'],
          },
        ]
      : []),
  ];
}

/** How the service's data are made; the password of PostgreSQL comes from the file of secrets, as it does for the unit. */
function initLines(user: string, init: string, database: string): readonly string[] {
  if (database === '') return [`runuser -u ${user} -- env TDS_CACHE=/var/cache/tds ${init}`];
  const run = `systemd-run --pty --uid=${user} --property=EnvironmentFile=-${SECRETS_FILE} --setenv=TDS_CACHE=/var/cache/tds`;
  return [
    `where PostgreSQL asks for a password: put TDS_DATABASE_PASSWORD=... into ${SECRETS_FILE}, of mode 600`,
    `${run} ${init} --database '${database}'`,
  ];
}

/** Throws `CommandFailed` for a program or data that the unit could not see. */
function valuesOf(options: InstallOptions): MachineValues {
  const { host, port, drainSeconds } = options;
  const data = options.data === settingOf('data').default ? SERVICE_DATA : resolve(options.data);
  if (options.systemd && HIDDEN.test(`${data}/`)) {
    throw new CommandFailed(
      `The unit hides ${data} from the service: name another directory with --data, such as ${SERVICE_DATA}.`,
    );
  }
  // Others can read a unit and a command line.
  const database = isPostgres(options.database) ? withoutPassword(options.database) : '';
  const program = options.systemd ? programOf(options.executable) : [];
  const listening = ['--host', host, '--port', String(port), '--drain-seconds', String(drainSeconds)];
  return {
    user: options.user,
    program,
    data,
    command: [
      ...program,
      'serve',
      '--data',
      data,
      ...listening,
      ...(database === '' ? [] : ['--database', database]),
    ],
    upstream: upstreamOf(host, port),
    database,
    domain: options.domain ?? '',
    stop_seconds: String(options.drainSeconds + STOP_SECONDS),
    capabilities: options.port < FREE_PORTS_FROM ? 'CAP_NET_BIND_SERVICE' : '',
    // The GPU is a device of the system.
    private_devices: existsSync('/proc/driver/nvidia/version') || existsSync('/dev/dri') ? 'no' : 'yes',
  };
}

/** Where a proxy on this machine reaches the service; what listens everywhere is reached on loopback. */
function upstreamOf(host: string, port: number): string {
  const reached = LOOPBACKS.get(host) ?? host;
  return `${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/** How the unit starts this program: by its executable, or from its checkout by Bun. */
function programOf(executable: string | undefined): readonly string[] {
  const paths = [executable === undefined ? process.execPath : resolve(executable)];
  if (executable === undefined && !IS_UNPACKED) paths.push(projectFile('src/main.ts'));
  const hidden = paths.find((path) => HIDDEN.test(path));
  if (hidden !== undefined) {
    throw new CommandFailed(
      `The unit hides ${hidden} from the service: copy the executable to /usr/local/bin/tds, and name it with --executable.`,
    );
  }
  return paths;
}

async function textOf(template: string, values: DeploymentValues): Promise<string> {
  const path = projectFile(`src/ops/deploy/${template}`);
  if (!existsSync(path)) throw new CommandFailed(`This program has no ${template}.`);
  const text = await readFile(path, 'utf8');
  try {
    // A dashboard's own braces are no places of ours.
    return template.endsWith('.json') ? text : fillTemplate(text, values);
  } catch (error) {
    if (error instanceof UnwritableValue) throw new CommandFailed(error.message, { cause: error });
    throw error;
  }
}

async function write(path: string, text: string, replace: boolean): Promise<void> {
  try {
    await writeFile(path, text, { flag: replace ? 'w' : 'wx', mode: 0o644 });
  } catch (cause) {
    const code = systemErrorCode(cause) ?? cause;
    throw new CommandFailed(
      code === 'EEXIST'
        ? `${path} is there already: replace it with --force, or name another folder with --output.`
        : `${path} cannot be written (${code}): name another folder with --output.`,
      { cause },
    );
  }
}
