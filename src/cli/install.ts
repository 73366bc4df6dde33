import { existsSync, realpathSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { DEFAULT_CONFIG_FILE } from '../config/config-file.ts';
import { isPostgres, withoutPassword } from '../config/database-address.ts';
import type { Effective } from '../config/effective.ts';
import { filledFile } from '../config/example.ts';
import { type SettingName, settingOf, type Values } from '../config/settings.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { IS_UNPACKED, projectFile } from '../files/project-root.ts';
import { dataCommand } from './command.ts';
import { CommandFailed, inOneSentence } from './command-failed.ts';
import { addSettings, settingsOf } from './command-settings.ts';
import { type DeploymentValues, fillTemplate, UnwritableValue } from './deployment-files.ts';
import { grafanaDashboard } from './grafana-dashboard.ts';
import { printLine } from './output.ts';

/** The settings whose values are known here; the operator adds others to the file. */
const WRITTEN_SETTINGS = [
  'data',
  'database',
  'host',
  'port',
  'drainSeconds',
  'drainDelay',
  'backupEvery',
  'backupDirectory',
  'metricsHost',
  'metricsPort',
] as const satisfies readonly SettingName[];

interface InstallOptions extends Values<(typeof WRITTEN_SETTINGS)[number]> {
  readonly systemd?: true;
  readonly caddy?: true;
  readonly grafana?: true;
  readonly prometheus?: true;
  readonly output: string;
  readonly force?: true;
  readonly executable?: string;
  readonly user: string;
  readonly domain?: string;
}

/** A written file, and the operator's next steps with it. */
interface Deployment {
  readonly name: string;
  readonly text: () => string | Promise<string>;
  readonly next: readonly string[];
}

/** The data directory of a service of that name under systemd. */
const SERVICE_DATA = '/var/lib/tds';
/** The settings file of the unit, and of every command that names no other. */
const SETTINGS_FILE = DEFAULT_CONFIG_FILE;
/** The file from which the unit reads secrets. */
const SECRETS_FILE = '/etc/tds.env';
/** The defaults of a service under systemd: metrics, backups, and a delay for a balancer. */
const SERVICE_DEFAULTS: ReadonlyMap<SettingName, string> = new Map([
  ['drainDelay', '5'],
  ['metricsPort', '9464'],
]);
const BACKUP_EVERY = '6h';
/** Lower ports need a capability. */
const FREE_PORTS_FROM = 1_024;
/** The most seconds of a stop after the time for running requests. */
const STOP_SECONDS = 60;
/** The addresses that reach a service which listens on every address. */
const LOOPBACKS: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);
/** The folders that the unit hides from the service. */
const HIDDEN = /^\/(home|root|run\/user|tmp|var\/tmp)\//;

/** Adds `tds install`. */
export function registerInstall(program: Command): void {
  const command = dataCommand(
    program,
    {
      usage: 'install',
      description:
        'write the files that run this program on this machine: a systemd unit with its settings, a Caddy file, alerts, a dashboard',
      example: 'tds install --systemd --caddy --domain decisions.example.com --output .',
    },
    ['data', 'database'],
  );
  addSettings(
    command,
    WRITTEN_SETTINGS.filter((name) => name !== 'data' && name !== 'database'),
  )
    .option('--systemd', 'write tds.service, a hardened unit, and tds.toml, its settings')
    .option('--caddy', 'write Caddyfile, a proxy with TLS; needs --domain')
    .option('--grafana', 'write tds-dashboard.json, a dashboard of the metrics')
    .option('--prometheus', 'write tds-alerts.yml, rules of alerts on the metrics')
    .option('--output <folder>', 'where the files are written', '.')
    .option('--force', 'replace files that are there')
    .option('--executable <path>', 'what the unit starts (default: this program)')
    .option('--user <name>', 'who the unit runs as', 'tds')
    .option('--domain <name>', 'what clients reach the service by')
    .action((options: InstallOptions) => install(options, settingsOf(command).effective));
}

async function install(options: InstallOptions, effective: readonly Effective[]): Promise<void> {
  const wanted = deployments(options, valuesOf(options, effective));
  if (wanted.length === 0)
    throw new CommandFailed('Name what to write: --systemd, --caddy, --grafana or --prometheus.');
  if (options.caddy && options.domain === undefined) {
    throw new CommandFailed('Name what clients reach the service by with --domain.');
  }
  // All texts are made before any is written.
  const texts = await Promise.all(wanted.map(({ text }) => text()));
  for (const [index, { name, next }] of wanted.entries()) {
    const path = join(options.output, name);
    await write(path, texts[index] ?? '', options.force === true);
    printLine(`Wrote ${path}. Then:`);
    for (const line of next) printLine(`  ${line}`);
  }
}

/** This machine's values, for the files and for the next steps. */
interface MachineValues {
  /** The values of the templates. */
  readonly places: DeploymentValues;
  /** The values of the settings file. */
  readonly settings: ReadonlyMap<SettingName, string>;
  readonly user: string;
  /** The command that starts this program, without arguments. */
  readonly program: readonly string[];
  /** The folders that the service writes: its data, and its backups where they are elsewhere. */
  readonly writable: readonly string[];
  readonly is_postgres: boolean;
  readonly domain: string;
  /** The address of the metrics for a Prometheus on this machine. */
  readonly metrics: string;
}

/** Returns the files that the options name. */
function deployments(
  { systemd, caddy, grafana, prometheus, output }: InstallOptions,
  values: MachineValues,
): readonly Deployment[] {
  const { places, domain, metrics } = values;
  const written = (name: string) => Bun.$.escape(join(output, name));
  const all: readonly (Deployment & { readonly is_wanted: true | undefined })[] = [
    {
      name: 'tds.toml',
      is_wanted: systemd,
      text: () => settingsFile(values),
      next: firstLines(values, written('tds.toml')),
    },
    {
      name: 'tds.service',
      is_wanted: systemd,
      text: () => textOf('tds.service', places),
      next: [
        `install -m 644 ${written('tds.service')} /etc/systemd/system/tds.service`,
        'systemctl daemon-reload && systemctl enable --now tds',
      ],
    },
    {
      name: 'Caddyfile',
      is_wanted: caddy,
      text: () => textOf('Caddyfile', places),
      next: [
        'let "caddy version" say 2.7 or later: an older one refuses this file, and would damage batches',
        `install -m 644 ${written('Caddyfile')} /etc/caddy/Caddyfile && systemctl reload caddy`,
        // In this file, because commands read it too: "tds user reset" prints a link to that address.
        `let the service know of the proxy, under [server] in ${SETTINGS_FILE}, and start it again:`,
        '  client_address_header = "X-Forwarded-For"',
        `  public_url = "${domain.includes('://') ? domain : `https://${domain}`}"`,
      ],
    },
    {
      name: 'tds-dashboard.json',
      is_wanted: grafana,
      text: () => `${JSON.stringify(grafanaDashboard(), null, 2)}\n`,
      next: ['import it in Grafana: Dashboards, New, Import'],
    },
    {
      name: 'tds-alerts.yml',
      is_wanted: prometheus,
      text: () => textOf('prometheus-alerts.yml', places),
      next: [
        `install -m 644 ${written('tds-alerts.yml')} /etc/prometheus/tds-alerts.yml`,
        'name it in rule_files of prometheus.yml, and the service in scrape_configs:',
        '  - job_name: tds',
        '    static_configs:',
        `      - targets: ['${metrics}']`,
      ],
    },
  ];
  return all.filter(({ is_wanted }) => is_wanted);
}

/**
 * Returns the unit's settings. They are in a file instead of its command line, because an operator can edit a
 * file.
 */
function settingsFile({ settings }: MachineValues): string {
  const heading = [
    '# Written by "tds install --systemd", for /etc/tds.toml. "tds config --example" prints every setting that there is.',
    '# After a change of the data directory, the backup directory, the times of a stop, or a port below 1024, let',
    '# "tds install --systemd" write the unit again: it says them too.',
  ];
  return filledFile(heading, settings);
}

/** Returns the commands that create the user, its folders, the settings and the data. */
function firstLines(
  { user, program, writable, is_postgres }: MachineValues,
  settings_file: string,
): readonly string[] {
  const init = `${program.join(' ')} init --config ${SETTINGS_FILE}`;
  return [
    `useradd --system --user-group --home-dir ${writable[0]} --shell /usr/sbin/nologin ${user}`,
    `install -d -m 700 -o ${user} -g ${user} ${writable.join(' ')} /var/cache/tds`,
    existsSync(SETTINGS_FILE)
      ? `${SETTINGS_FILE} is there already: add what it lacks of ${settings_file}`
      : `install -m 644 ${settings_file} ${SETTINGS_FILE}`,
    ...(is_postgres
      ? [
          `where PostgreSQL asks for a password: put TDS_DATABASE_PASSWORD='...' into ${SECRETS_FILE}, of mode 600`,
          // The password comes from the file of secrets, as for the unit.
          `systemd-run --pty --uid=${user} --property=EnvironmentFile=-${SECRETS_FILE} --setenv=TDS_CACHE=/var/cache/tds ${init}`,
        ]
      : [`runuser -u ${user} -- env TDS_CACHE=/var/cache/tds ${init}`]),
  ];
}

/**
 * Returns this machine's values. Throws `CommandFailed` for a program or folders that the unit could not see.
 */
function valuesOf(options: InstallOptions, effective: readonly Effective[]): MachineValues {
  const data = options.data === settingOf('data').default ? SERVICE_DATA : resolve(options.data);
  const backups = options.backupDirectory === undefined ? [] : [resolve(options.backupDirectory)];
  const writable = [data, ...backups];
  const hidden = options.systemd ? writable.find((path) => HIDDEN.test(`${path}/`)) : undefined;
  if (hidden !== undefined) {
    const [flag, better] =
      hidden === data ? ['--data', SERVICE_DATA] : ['--backup-directory', '/var/backups/tds'];
    throw new CommandFailed(
      `The unit hides ${hidden} from the service: name another directory with ${flag}, such as ${better}.`,
    );
  }
  const is_postgres = isPostgres(options.database);
  const settings = new Map<SettingName, string>(is_postgres ? [] : [['backupEvery', BACKUP_EVERY]]);
  for (const { name, text, origin } of effective) {
    const value = origin.from === 'default' ? (SERVICE_DEFAULTS.get(name) ?? text) : text;
    if (value !== null && WRITTEN_SETTINGS.some((one) => one === name)) settings.set(name, value);
  }
  settings.set('data', data);
  for (const directory of backups) settings.set('backupDirectory', directory);
  // Others can read the file.
  settings.set('database', withoutPassword(options.database));
  const program = options.systemd ? programOf(options.executable) : [];
  const stop_s = options.drainSeconds + Number(settings.get('drainDelay')) + STOP_SECONDS;
  const places = {
    user: options.user,
    data,
    writable,
    command: [...program, 'serve', '--config', SETTINGS_FILE],
    upstream: upstreamOf(options.host, options.port),
    domain: options.domain ?? '',
    stop_seconds: String(stop_s),
    capabilities: options.port < FREE_PORTS_FROM ? 'CAP_NET_BIND_SERVICE' : '',
    // The GPU is a device of the system.
    private_devices: existsSync('/proc/driver/nvidia/version') || existsSync('/dev/dri') ? 'no' : 'yes',
  };
  return {
    places,
    settings,
    user: options.user,
    program,
    writable,
    is_postgres,
    domain: places.domain,
    metrics: upstreamOf(options.metricsHost, Number(settings.get('metricsPort'))),
  };
}

/**
 * Returns the address of the service for a proxy on this machine; loopback if the service listens on all
 * addresses.
 */
function upstreamOf(host: string, port: number): string {
  const reached = LOOPBACKS.get(host) ?? host;
  return `${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

/** Returns the unit's command: the executable, or Bun with the checkout. */
function programOf(executable: string | undefined): readonly string[] {
  // The launcher of an executable leaves only `/proc/self/exe`.
  const paths = [executable === undefined ? realpathSync(process.execPath) : resolve(executable)];
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
  const path = projectFile(`src/deploy/${template}`);
  if (!existsSync(path)) throw new CommandFailed(`This program has no ${template}.`);
  const text = await readFile(path, 'utf8');
  return await inOneSentence([UnwritableValue], () => fillTemplate(text, values));
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
