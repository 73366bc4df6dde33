import { InvalidArgumentError } from 'commander';
import { EVALUATOR_CHOICES, GPUS, type Gpu, THREADS_MAX } from '../../native/engine.ts';
import { AUDIT_LOG_RETENTION_DAYS } from '../audit-log/roll-up.ts';
import { ACCOUNT_ERRORS } from '../errors/errors.ts';
import { BYTES_PER_MEGABYTE } from '../files/bytes.ts';
import { LOG_LEVELS } from '../log/log-level.ts';
import { DISK_FLOOR_BYTES } from '../observability/readiness.ts';
import { QUEUE_LIMIT } from '../scheduling/model-scheduler.ts';
import { hiddenPassword, parseDatabaseAddress, SQLITE } from './database-address.ts';
import { parseOtlpEndpoint, parseOtlpHeaders } from './otlp.ts';
import {
  DURATION,
  oneOf,
  type Setting,
  SWITCH,
  setting,
  TEXT,
  textOf,
  wholeNumber,
  wholeNumberOr,
} from './setting.ts';

const PORT_MAX = 65_535;
const LOG_FILE_MEGABYTES_MAX = 100_000;
const DISK_FLOOR_MEGABYTES_MAX = 1_000_000_000;
const PREFIX_CACHE_MEGABYTES_MAX = 1_000_000;
const LOG_FILES_MAX = 1_000;
/** The default address of a service. */
export const SERVICE_URL = 'http://127.0.0.1:8080';
/** The rules of sign-up to the console. */
export const SIGN_UP_RULES = ['open', 'invited'] as const;
const BACKUPS_MAX = 10_000;
const QUEUE_MAX = 1_000_000;
const DAY_S = 86_400;
const RETENTION_DAYS_MAX = 36_500;
const CONNECTIONS_MAX = 1_000_000;
const PERCENT_MAX = 100;
/**
 * Of the connections for requests, four may be reserved for one purpose each. These are the lease of the
 * node, the ledger, the ledger's writes for locked organizations, and the release of a dead node's holds. One
 * more has the store's transaction, and one is for reads, such as that of the catalog by every request.
 */
export const CONNECTIONS_TO_DATABASE_MIN = 6;
const CONNECTIONS_TO_DATABASE_MAX = 1_000;

/**
 * Every setting, by commander's name of its flag. Flags and `--help`, the environment, the TOML file, `tds
 * config` and the reload on SIGHUP all use this table.
 */
export const SETTINGS = {
  data: setting(TEXT, {
    flag: '--data <directory>',
    variable: 'TDS_DATA',
    key: 'data.directory',
    help: 'directory of the database',
    default: './data',
  }),
  init: setting(SWITCH, {
    flag: '--init',
    variable: 'TDS_INIT',
    key: 'data.init',
    help: 'fill an empty data directory; without it, that is done on a terminal only',
    default: false,
  }),
  owner: setting(textOf(parseEmail), {
    flag: '--owner <email>',
    variable: 'TDS_OWNER',
    key: 'data.owner',
    help: 'owner of the first organization, when an empty data directory is filled',
    example: 'ada@example.com',
  }),
  diskFloor: setting(wholeNumber(0, DISK_FLOOR_MEGABYTES_MAX), {
    flag: '--disk-floor <megabytes>',
    variable: 'TDS_DISK_FLOOR',
    key: 'data.disk_floor',
    help: 'megabytes that must be free on the disk of the data directory, or /readyz fails; 0 never fails it',
    default: DISK_FLOOR_BYTES / BYTES_PER_MEGABYTE,
    on_reload: 'applied',
  }),
  database: setting(textOf(parseDatabaseAddress), {
    flag: '--database <address>',
    variable: 'TDS_DATABASE',
    key: 'database.address',
    help: 'where everything is kept: sqlite: is a file in the data directory; nodes share one postgres://user@host/name',
    default: SQLITE,
    public_text: hiddenPassword,
  }),
  databasePassword: setting(TEXT, {
    flag: null,
    variable: 'TDS_DATABASE_PASSWORD',
    key: 'database.password',
    help: 'password of PostgreSQL, where its address has none (default: PGPASSWORD)',
    example: 'secret',
    is_secret: true,
  }),
  databaseConnections: setting(wholeNumber(CONNECTIONS_TO_DATABASE_MIN, CONNECTIONS_TO_DATABASE_MAX), {
    flag: '--database-connections <n>',
    variable: 'TDS_DATABASE_CONNECTIONS',
    key: 'database.connections',
    help: 'connections to PostgreSQL for requests; up to seven more are for readers, history, rate windows and the start',
    default: 10,
  }),
  host: setting(textOf(parseHost), {
    flag: '--host <address>',
    variable: 'TDS_HOST',
    key: 'server.host',
    help: 'address to listen on',
    default: '127.0.0.1',
  }),
  port: setting(wholeNumber(0, PORT_MAX), {
    flag: '--port <n>',
    variable: 'TDS_PORT',
    key: 'server.port',
    help: 'port to listen on; 0 takes any free one',
    default: 8080,
  }),
  connectionLimit: setting(wholeNumber(1, CONNECTIONS_MAX), {
    flag: '--connection-limit <n>',
    variable: 'TDS_CONNECTION_LIMIT',
    key: 'server.connection_limit',
    help: 'connections open at once (default: what file descriptors allow)',
    example: '1000',
    on_reload: 'applied',
  }),
  connectionLimitPerAddress: setting(wholeNumber(1, CONNECTIONS_MAX), {
    flag: '--connection-limit-per-address <n>',
    variable: 'TDS_CONNECTION_LIMIT_PER_ADDRESS',
    key: 'server.connection_limit_per_address',
    help: 'of them from one address; behind a proxy, requests at once of one client (default: half)',
    example: '500',
    on_reload: 'applied',
  }),
  clientAddressHeader: setting(textOf(parseHeaderName), {
    flag: '--client-address-header <name>',
    variable: 'TDS_CLIENT_ADDRESS_HEADER',
    key: 'server.client_address_header',
    help: 'header in which the proxy names the client, such as X-Forwarded-For; its last element is trusted',
    example: 'X-Forwarded-For',
  }),
  apiReference: setting(oneOf(['on', 'off']), {
    flag: '--api-reference <on|off>',
    variable: 'TDS_API_REFERENCE',
    key: 'server.api_reference',
    help: 'whether the API reference is served at /swagger, and its OpenAPI document: on or off',
    default: 'on',
  }),
  console: setting(oneOf(['on', 'off']), {
    flag: '--console <on|off>',
    variable: 'TDS_CONSOLE',
    key: 'server.console',
    help: 'whether the web console is served at /console: on or off',
    default: 'on',
  }),
  publicUrl: setting(textOf(originLike('https://tds.example.com')), {
    flag: '--public-url <address>',
    variable: 'TDS_PUBLIC_URL',
    key: 'server.public_url',
    help: 'address under which people reach the service, for mails and documents (default: the one that is served)',
    example: 'https://tds.example.com',
  }),
  drainSeconds: setting(wholeNumber(0, DAY_S), {
    flag: '--drain-seconds <seconds>',
    variable: 'TDS_DRAIN_SECONDS',
    key: 'server.drain_seconds',
    help: 'time that a stop lets the requests in flight finish; then they are cut, unpaid',
    default: 120,
    unit: 'seconds',
  }),
  drainDelay: setting(wholeNumber(0, DAY_S), {
    flag: '--drain-delay <seconds>',
    variable: 'TDS_DRAIN_DELAY',
    key: 'server.drain_delay',
    help: 'time before that in which /readyz fails and requests are still taken, for a balancer to turn to other nodes',
    default: 0,
    unit: 'seconds',
  }),
  tlsCert: setting(TEXT, {
    flag: '--tls-cert <file>',
    variable: 'TDS_TLS_CERT',
    key: 'tls.cert',
    help: 'PEM file of the certificate and its chain, to serve HTTPS; read again when it changes',
    example: '/etc/tds/certificate.pem',
    on_reload: 'applied_while_set',
  }),
  tlsKey: setting(TEXT, {
    flag: '--tls-key <file>',
    variable: 'TDS_TLS_KEY',
    key: 'tls.key',
    help: 'PEM file of the key of the certificate',
    example: '/etc/tds/key.pem',
    on_reload: 'applied_while_set',
  }),
  model: setting(TEXT, {
    flag: '--model <path>',
    variable: 'TDS_MODEL',
    key: 'model.path',
    help: 'GGUF file, or the first part of a split one (default: the embedded decision-1)',
    example: '/var/lib/tds/model.gguf',
  }),
  gpu: setting(textOf(parseGpu), {
    flag: '--gpu <backend>',
    variable: 'TDS_GPU',
    key: 'model.gpu',
    help: 'what computes: auto, cuda, metal, vulkan or none',
    default: 'auto',
  }),
  threads: setting(wholeNumberOr('auto', 1, THREADS_MAX), {
    flag: '--threads <n>',
    variable: 'TDS_THREADS',
    key: 'model.threads',
    help: 'threads that compute; auto takes all cores but one, and on Linux all while nothing else needs them',
    default: 'auto',
  }),
  evaluator: setting(oneOf(EVALUATOR_CHOICES), {
    flag: '--evaluator <name>',
    variable: 'TDS_EVALUATOR',
    key: 'model.evaluator',
    help: 'what evaluates plans: auto, addon (C++, built at first use) or llama (node-llama-cpp)',
    default: 'auto',
  }),
  deterministic: setting(SWITCH, {
    flag: '--deterministic',
    variable: 'TDS_DETERMINISTIC',
    key: 'model.deterministic',
    help: 'equal bits whatever else is asked at the same time, on any device; slower',
    default: false,
  }),
  prefixCache: setting(wholeNumber(0, PREFIX_CACHE_MEGABYTES_MAX), {
    flag: '--prefix-cache <megabytes>',
    variable: 'TDS_PREFIX_CACHE',
    key: 'model.prefix_cache',
    help: 'memory for records that were read, of each model; 0 keeps none (default: 512, or an eighth of the memory)',
    example: '512',
  }),
  idleUnload: setting(wholeNumber(0, DAY_S), {
    flag: '--idle-unload <seconds>',
    variable: 'TDS_IDLE_UNLOAD',
    key: 'model.idle_unload',
    help: 'unload the model after this time without a request; 0 keeps it',
    default: 0,
    unit: 'seconds',
    on_reload: 'applied',
  }),
  queueLimit: setting(wholeNumber(1, QUEUE_MAX), {
    flag: '--queue-limit <n>',
    variable: 'TDS_QUEUE_LIMIT',
    key: 'model.queue_limit',
    help: 'requests that may be at the model, waiting or running; one organization may have as many as are still free',
    default: QUEUE_LIMIT,
    on_reload: 'applied',
  }),
  evaluationTimeout: setting(wholeNumber(1, DAY_S), {
    flag: '--evaluation-timeout <seconds>',
    variable: 'TDS_EVALUATION_TIMEOUT',
    key: 'model.evaluation_timeout',
    help: "longest time from a request's first turn at the model to its answer (default: 300, or ten times what its tokens should take at this machine's measured speed)",
    example: '300',
    unit: 'seconds',
    on_reload: 'applied',
  }),
  usageRetentionDays: setting(wholeNumber(1, RETENTION_DAYS_MAX), {
    flag: '--usage-retention-days <n>',
    variable: 'TDS_USAGE_RETENTION_DAYS',
    key: 'usage.retention_days',
    help: 'roll the usage and ledger of older requests up into daily totals, but never this UTC month (default: keep all)',
    example: '400',
    unit: 'days',
    on_reload: 'applied',
  }),
  auditLogRetentionDays: setting(wholeNumber(1, RETENTION_DAYS_MAX), {
    flag: '--audit-log-retention-days <n>',
    variable: 'TDS_AUDIT_LOG_RETENTION_DAYS',
    key: 'audit_log.retention_days',
    help: 'make one entry of what a user did in the same way on a day, once it is so old; what is about money stays',
    default: AUDIT_LOG_RETENTION_DAYS,
    unit: 'days',
    on_reload: 'applied',
  }),
  backupEvery: setting(DURATION, {
    flag: '--backup-every <duration>',
    variable: 'TDS_BACKUP_EVERY',
    key: 'backup.every',
    help: 'back the database up so often, such as 6h or 30m; never without it',
    example: '6h',
  }),
  backupKeep: setting(wholeNumber(1, BACKUPS_MAX), {
    flag: '--backup-keep <n>',
    variable: 'TDS_BACKUP_KEEP',
    key: 'backup.keep',
    help: 'backups that are kept; older ones are removed after a good new one',
    default: 28,
  }),
  backupDirectory: setting(TEXT, {
    flag: '--backup-directory <directory>',
    variable: 'TDS_BACKUP_DIRECTORY',
    key: 'backup.directory',
    help: 'where backups go, best on another disk; without it, "backups" in the data directory',
    example: '/var/backups/tds',
  }),
  backupCommand: setting(TEXT, {
    flag: '--backup-command <program>',
    variable: 'TDS_BACKUP_COMMAND',
    key: 'backup.command',
    help: 'program that is run with the path of each new backup, to copy it off this machine; it has half an hour',
    example: '/usr/local/bin/copy-backup',
  }),
  logLevel: setting(oneOf(LOG_LEVELS), {
    flag: '--log-level <level>',
    variable: 'TDS_LOG_LEVEL',
    key: 'log.level',
    help: `how much is logged: ${LOG_LEVELS.join(', ')}`,
    default: 'info',
    on_reload: 'applied',
  }),
  logFile: setting(TEXT, {
    flag: '--log-file <path>',
    variable: 'TDS_LOG_FILE',
    key: 'log.file',
    help: 'file for the log instead of standard output; SIGHUP opens it again',
    example: '/var/log/tds/tds.log',
  }),
  logFileSize: setting(wholeNumber(1, LOG_FILE_MEGABYTES_MAX), {
    flag: '--log-file-size <megabytes>',
    variable: 'TDS_LOG_FILE_SIZE',
    key: 'log.file_size',
    help: 'megabytes at which another log file is begun',
    default: 100,
  }),
  logFileKeep: setting(wholeNumber(1, LOG_FILES_MAX), {
    flag: '--log-file-keep <n>',
    variable: 'TDS_LOG_FILE_KEEP',
    key: 'log.file_keep',
    help: 'full log files that are kept beside it',
    default: 5,
  }),
  logClientAddress: setting(SWITCH, {
    flag: '--log-client-address',
    variable: 'TDS_LOG_CLIENT_ADDRESS',
    key: 'log.client_address',
    help: 'name the address of the client in the log line of each request; it is personal data',
    default: false,
  }),
  metricsHost: setting(textOf(parseHost), {
    flag: '--metrics-host <address>',
    variable: 'TDS_METRICS_HOST',
    key: 'metrics.host',
    help: 'address on which metrics are read',
    default: '127.0.0.1',
  }),
  metricsPort: setting(wholeNumber(0, PORT_MAX), {
    flag: '--metrics-port <n>',
    variable: 'TDS_METRICS_PORT',
    key: 'metrics.port',
    help: 'port on which Prometheus and "tds top" read metrics; 0 takes any free one',
    example: '9464',
  }),
  signUp: setting(oneOf(SIGN_UP_RULES), {
    flag: '--sign-up <rule>',
    variable: 'TDS_SIGN_UP',
    key: 'console.sign_up',
    help: 'who may sign up to the console: open (everybody) or invited (whoever has an invitation)',
    default: 'open',
  }),
  smtpUrl: setting(textOf(parseSmtpUrl), {
    flag: null,
    variable: 'TDS_SMTP_URL',
    key: 'mail.smtp_url',
    help: 'mail server, with its user and password; without it, mails are written to standard output',
    example: 'smtp://user:password@mail.example.com:587',
    is_secret: true,
  }),
  mailFrom: setting(textOf(parseSender), {
    flag: '--mail-from <address>',
    variable: 'TDS_MAIL_FROM',
    key: 'mail.from',
    help: 'sender of mails',
    example: 'Typed Decision Service <tds@example.com>',
  }),
  otlpEndpoint: setting(textOf(parseOtlpEndpoint), {
    flag: '--otlp-endpoint <url>',
    variable: 'TDS_OTLP_ENDPOINT',
    key: 'traces.otlp_endpoint',
    help: 'OpenTelemetry collector that gets traces by OTLP over HTTP, at /v1/traces below this; none without it',
    example: 'http://127.0.0.1:4318',
  }),
  otlpHeaders: setting(textOf(parseOtlpHeaders), {
    flag: null,
    variable: 'TDS_OTLP_HEADERS',
    key: 'traces.otlp_headers',
    help: 'headers for the collector, such as its key: name=value, with a comma between two',
    example: 'authorization=Bearer%20KEY',
    is_secret: true,
  }),
  tracePercent: setting(wholeNumber(1, PERCENT_MAX), {
    flag: '--trace-percent <n>',
    variable: 'TDS_TRACE_PERCENT',
    key: 'traces.percent',
    help: 'of a hundred requests, how many are traced; never one whose client says that it is not sampled',
    default: PERCENT_MAX,
  }),
  paddleApiKey: setting(TEXT, {
    flag: null,
    variable: 'TDS_PADDLE_API_KEY',
    key: 'paddle.api_key',
    help: 'API key of Paddle Billing; without it, credit is given by hand only',
    example: 'pdl_live_apikey_…',
    is_secret: true,
    on_reload: 'applied_while_set',
  }),
  paddleWebhookSecret: setting(TEXT, {
    flag: null,
    variable: 'TDS_PADDLE_WEBHOOK_SECRET',
    key: 'paddle.webhook_secret',
    help: "secret of Paddle's notification destination, with which it signs webhooks",
    example: 'pdl_ntfset_…',
    is_secret: true,
    on_reload: 'applied_while_set',
  }),
  paddleProductId: setting(TEXT, {
    flag: null,
    variable: 'TDS_PADDLE_PRODUCT_ID',
    key: 'paddle.product_id',
    help: 'product in Paddle that credit is sold as',
    example: 'pro_…',
    on_reload: 'applied_while_set',
  }),
  paddleEnvironment: setting(oneOf(['production', 'sandbox']), {
    flag: null,
    variable: 'TDS_PADDLE_ENVIRONMENT',
    key: 'paddle.environment',
    help: 'production, or sandbox to try Paddle without money',
    default: 'production',
    on_reload: 'applied',
  }),
  url: setting(textOf(originLike(SERVICE_URL)), {
    flag: '--url <address>',
    variable: 'TDS_URL',
    key: 'client.url',
    help: `the running service, for "tds decide" and "tds mcp" (default: ${SERVICE_URL}) and the link of "tds user reset" (default: the one that runs on the data directory)`,
    example: SERVICE_URL,
  }),
  key: setting(TEXT, {
    flag: null,
    variable: 'TDS_API_KEY',
    key: 'client.key',
    help: 'API key for "tds decide" and "tds mcp"',
    example: 'sk_svc_…',
    is_secret: true,
  }),
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;

/** The names of all settings, in the order of the table. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName);

function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

/** Returns the row of a setting. */
export function settingOf(name: SettingName): Setting {
  return SETTINGS[name];
}

type ValueOf<Row> = Row extends Setting<infer Value> ? Value : never;

/** The values of those settings. */
export type Values<Name extends SettingName> = {
  readonly [Key in Name]: ValueOf<(typeof SETTINGS)[Key]>;
};

/** The settings that choose and run a model, for every command that needs one. */
export const MODEL_SETTINGS = [
  'model',
  'gpu',
  'threads',
  'evaluator',
  'deterministic',
  'prefixCache',
] as const satisfies readonly SettingName[];

/** The settings of Paddle Billing. */
export const PADDLE_SETTINGS = [
  'paddleApiKey',
  'paddleWebhookSecret',
  'paddleProductId',
  'paddleEnvironment',
] as const satisfies readonly SettingName[];

/** The settings of every command on stored data. */
export const DATA_SETTINGS = [
  'data',
  'database',
  'databasePassword',
] as const satisfies readonly SettingName[];

/** The settings of every command that asks a running service. */
export const CLIENT_SETTINGS = ['url', 'key'] as const satisfies readonly SettingName[];

type ServeSetting = Exclude<SettingName, (typeof DATA_SETTINGS)[number] | (typeof CLIENT_SETTINGS)[number]>;

/** The settings of `tds serve` beside those of stored data: all but those of clients. */
export const SERVE_SETTINGS: readonly ServeSetting[] = SETTING_NAMES.filter(isServeSetting);

function isServeSetting(name: SettingName): name is ServeSetting {
  const others: readonly SettingName[] = [...DATA_SETTINGS, ...CLIENT_SETTINGS];
  return !others.includes(name);
}

/** The values that choose and run a model. */
export type ModelConfig = Values<(typeof MODEL_SETTINGS)[number]>;

/** The values for Paddle Billing: all of them, or none but the environment (`contradiction`). */
export type PaddleConfig = Values<(typeof PADDLE_SETTINGS)[number]>;

/** The values that bound the connections. */
export type ConnectionConfig = Values<'connectionLimit' | 'connectionLimitPerAddress'>;

/** The values of `tds serve`. */
export type ServeConfig = Values<ServeSetting>;

/** The settings of which a reload applies a new value. */
type ReloadedSetting = {
  [Name in SettingName]: (typeof SETTINGS)[Name]['on_reload'] extends 'restart' ? never : Name;
}[SettingName];

/** The values that a reload applies. */
export type ReloadedConfig = Values<ReloadedSetting>;

/** Parses an address. Its exact form is checked where a user is made: a service with users needs none. */
function parseEmail(text: string): string {
  if (/^[^\s@]+@[^\s@]+$/.test(text)) return text;
  throw new InvalidArgumentError(ACCOUNT_ERRORS.invalid_email.message);
}

/** Parses a host; an IPv6 address may be in brackets, as in a URL. */
function parseHost(text: string): string {
  const [, address = text] = /^\[(.*)\]$/.exec(text) ?? [];
  return TEXT.parse(address);
}

/** Returns a parser of addresses of a service, which have no path: it would be dropped. */
function originLike(example: string): (text: string) => string {
  return (text) => {
    const url = URL.parse(text);
    const is_address = url?.protocol === 'http:' || url?.protocol === 'https:';
    if (is_address && url.href === `${url.origin}/`) return url.origin;
    throw new InvalidArgumentError(`It must be an address such as ${example}.`);
  };
}

/** One address, bare or behind a name. The mail library would take anything else as mails without a sender. */
const SENDER =
  /^(?:[^\s@<>,;:"]+@[^\s@<>,;:"]+|(?:"[^"\r\n]*" *|[^@<>,;:"\r\n]*)<[^\s@<>,;:"]+@[^\s@<>,;:"]+>)$/;

function parseSender(text: string): string {
  if (SENDER.test(text)) return text;
  throw new InvalidArgumentError('It must be one address: tds@example.com, or a name and <tds@example.com>.');
}

function parseSmtpUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if ((url?.protocol === 'smtp:' || url?.protocol === 'smtps:') && url.hostname !== '') return text;
  throw new InvalidArgumentError('It must be an address such as smtp://mail.example.com:587.');
}

function parseHeaderName(text: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(text)) return text;
  throw new InvalidArgumentError('It must be the name of a header.');
}

function parseGpu(text: string): Gpu {
  const gpu = text === 'none' ? false : GPUS.find((candidate) => candidate === text);
  if (gpu === undefined) throw new InvalidArgumentError('It must be auto, cuda, metal, vulkan or none.');
  return gpu;
}
