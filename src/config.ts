import { InvalidArgumentError, Option } from 'commander';
import {
  EVALUATOR_CHOICES,
  type EvaluatorChoice,
  GPUS,
  type Gpu,
  type OpenOptions,
} from '../native/engine.ts';
import { AccountError } from './accounts/errors.ts';
import { checkedEmail } from './accounts/names.ts';
import { QUEUE_LIMIT } from './limits/model-turns.ts';
import { LOG_LEVELS, type LogLevel } from './ops/log-level.ts';
import type { PaddleSettings } from './payments/paddle.ts';

/** Which model answers, and what runs it. */
export interface ModelConfig {
  /** A GGUF file, or the first part of a split one; the embedded weights when undefined. */
  readonly model?: string;
  readonly gpu: Gpu;
  /** Threads that compute; undefined leaves one core for everything else. */
  readonly threads?: number;
  readonly evaluator: EvaluatorChoice;
  /** Equal bits whatever else is asked at the same time, at a cost in speed. */
  readonly deterministic?: true;
}

/** Everything that an operator can set for a running service. */
export interface ServeConfig extends ModelConfig {
  readonly host: string;
  readonly port: number;
  /** Seconds without a request after which the model is unloaded; 0 keeps it. */
  readonly idleUnload: number;
  /** Days after which the usage of a request is rolled up into daily totals; undefined keeps every row. */
  readonly usageRetentionDays?: number;
  /** Connections that may be open; undefined leaves it to the file descriptors of the process. */
  readonly connectionLimit?: number;
  /** Of them from one address; undefined is half. */
  readonly connectionLimitPerAddress?: number;
  /** The header in which the proxy names the client; undefined trusts none. */
  readonly clientAddressHeader?: string;
  /** PEM files of the certificate, with its chain, and of its key; undefined serves in the clear. */
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** Requests that may be at the model, waiting or running, before more are refused. */
  readonly queueLimit: number;
  /** Seconds from a request's first turn at the model to its answer. */
  readonly evaluationTimeout: number;
  /** Seconds that a stop lets the requests in flight finish. */
  readonly drainSeconds: number;
  /** Milliseconds between two backups; undefined makes none. */
  readonly backupEvery?: number;
  /** How many backups are kept. */
  readonly backupKeep: number;
  /** Where they go; undefined is a folder of the data directory. */
  readonly backupDirectory?: string;
  readonly logLevel: LogLevel;
  /** Whether an empty data directory is filled though nobody is at a terminal. */
  readonly init?: true;
  /** Email address of the owner of the organization that an empty data directory is filled with. */
  readonly owner?: string;
  /** Whether the API reference is served at `/swagger`. */
  readonly apiReference: 'on' | 'off';
}

const PORT_MAX = 65_535;
const THREADS_MAX = 512;
const QUEUE_MAX = 1_000_000;
const DAY_S = 86_400;
const RETENTION_DAYS_MAX = 36_500;
const CONNECTIONS_MAX = 1_000_000;
const BACKUPS_MAX = 10_000;

/** What `openEngine` takes, of the options of `modelOptions`. */
export function openOptions(config: ModelConfig): OpenOptions {
  return {
    model_path: config.model,
    gpu: config.gpu,
    threads: config.threads,
    evaluator: config.evaluator,
    deterministic: config.deterministic,
    // On standard error, because standard output may be JSON.
    onBuild: () =>
      process.stderr.write('Compiling the native engine, once on this machine; this can take a minute.\n'),
  };
}

/**
 * The options that choose and run a model, for every command that needs one. A flag wins over its environment variable,
 * and that over the default; `--help` prints all three.
 */
export function modelOptions(): Option[] {
  return [
    new Option(
      '--model <path>',
      'GGUF file, or the first part of a split one (default: the embedded decision-1)',
    ).env('TDS_MODEL'),
    new Option('--gpu <backend>', 'auto, cuda, metal, vulkan or none')
      .env('TDS_GPU')
      .default('auto')
      .argParser(parseGpu),
    new Option('--threads <n>', 'threads that compute (default: all cores but one)')
      .env('TDS_THREADS')
      .argParser(wholeNumberBetween(1, THREADS_MAX)),
    new Option('--evaluator <name>', 'auto, addon (C++, built at first use) or llama (node-llama-cpp)')
      .env('TDS_EVALUATOR')
      .default('auto' satisfies EvaluatorChoice)
      .choices(EVALUATOR_CHOICES),
    new Option(
      '--deterministic',
      'equal bits whatever else is asked at the same time, on any device; slower',
    ),
  ];
}

/** The options of `tds serve` beside those of the model and `--data`. */
export function serveOptions(): Option[] {
  return [
    new Option('--host <address>', 'address to listen on').env('TDS_HOST').default('127.0.0.1'),
    new Option('--port <n>', 'port to listen on; 0 takes any free one')
      .env('TDS_PORT')
      .default(8080)
      .argParser(wholeNumberBetween(0, PORT_MAX)),
    new Option('--init', 'fill an empty data directory; without it, that is done on a terminal only'),
    new Option(
      '--owner <email>',
      'owner of the first organization, when an empty data directory is filled',
    ).argParser(parseEmail),
    new Option('--idle-unload <seconds>', 'unload the model after this time without a request; 0 keeps it')
      .env('TDS_IDLE_UNLOAD')
      .default(0)
      .argParser(wholeNumberBetween(0, DAY_S)),
    new Option(
      '--usage-retention-days <n>',
      'roll the usage and ledger of older requests up into daily totals, but never this UTC month (default: keep all)',
    )
      .env('TDS_USAGE_RETENTION_DAYS')
      .argParser(wholeNumberBetween(1, RETENTION_DAYS_MAX)),
    new Option('--connection-limit <n>', 'connections open at once (default: what file descriptors allow)')
      .env('TDS_CONNECTION_LIMIT')
      .argParser(wholeNumberBetween(1, CONNECTIONS_MAX)),
    new Option(
      '--connection-limit-per-address <n>',
      'of them from one address; behind a proxy, requests at once of one client (default: half)',
    )
      .env('TDS_CONNECTION_LIMIT_PER_ADDRESS')
      .argParser(wholeNumberBetween(1, CONNECTIONS_MAX)),
    new Option(
      '--client-address-header <name>',
      'header in which the proxy names the client, such as X-Forwarded-For; its last element is trusted',
    )
      .env('TDS_CLIENT_ADDRESS_HEADER')
      .argParser(parseHeaderName),
    new Option(
      '--tls-cert <file>',
      'PEM file of the certificate and its chain, to serve HTTPS; read again when it changes',
    ).env('TDS_TLS_CERT'),
    new Option('--tls-key <file>', 'PEM file of the key of the certificate').env('TDS_TLS_KEY'),
    new Option(
      '--queue-limit <n>',
      'requests that may be at the model, waiting or running; one organization may have as many as are still free',
    )
      .env('TDS_QUEUE_LIMIT')
      .default(QUEUE_LIMIT)
      .argParser(wholeNumberBetween(1, QUEUE_MAX)),
    new Option(
      '--evaluation-timeout <seconds>',
      "time from a request's first turn at the model to its answer",
    )
      .env('TDS_EVALUATION_TIMEOUT')
      .default(300)
      .argParser(wholeNumberBetween(1, DAY_S)),
    new Option(
      '--drain-seconds <seconds>',
      'time that a stop lets the requests in flight finish; then they are cut, unpaid',
    )
      .env('TDS_DRAIN_SECONDS')
      .default(120)
      .argParser(wholeNumberBetween(0, DAY_S)),
    new Option(
      '--backup-every <duration>',
      'back the database up so often, such as 6h or 30m (default: never)',
    )
      .env('TDS_BACKUP_EVERY')
      .argParser(parseDuration_ms),
    new Option('--backup-keep <n>', 'backups that are kept; older ones are removed after a good new one')
      .env('TDS_BACKUP_KEEP')
      .default(28)
      .argParser(wholeNumberBetween(1, BACKUPS_MAX)),
    backupDirectoryOption(),
    new Option('--log-level <level>', LOG_LEVELS.join(', '))
      .env('TDS_LOG_LEVEL')
      .default('info' satisfies LogLevel)
      .choices(LOG_LEVELS),
    new Option('--api-reference <on|off>', 'whether the API reference is served at /swagger')
      .env('TDS_API_REFERENCE')
      .default('on' satisfies ServeConfig['apiReference'])
      .choices(['on', 'off']),
  ];
}

/** The option that names the folder of backups, for every command that looks into it. */
export function backupDirectoryOption(): Option {
  return new Option(
    '--backup-directory <directory>',
    'where backups go, best on another disk (default: backups in the data directory)',
  ).env('TDS_BACKUP_DIRECTORY');
}

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function parseDuration_ms(text: string): number {
  const [, digits = '', unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  if (unit === 's' || unit === 'm' || unit === 'h' || unit === 'd') return Number(digits) * UNITS_MS[unit];
  throw new InvalidArgumentError('It must be a number and a unit, such as 6h, 30m or 1d.');
}

/** A parser of whole numbers from `least` to `most`; anything else is an error of usage, with `advice`. */
export function wholeNumberBetween(
  least: number,
  most: number,
  advice = `It must be a whole number from ${least} to ${most}.`,
): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(advice);
  };
}

function parseEmail(text: string): string {
  try {
    return checkedEmail(text);
  } catch (error) {
    throw error instanceof AccountError ? new InvalidArgumentError(error.message) : error;
  }
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

/** Paddle's settings are secrets, so they come from the environment only. */
const PADDLE_VARIABLES = {
  api_key: 'TDS_PADDLE_API_KEY',
  webhook_secret: 'TDS_PADDLE_WEBHOOK_SECRET',
  product_id: 'TDS_PADDLE_PRODUCT_ID',
} as const;

/**
 * The settings of Paddle Billing; null when none is set, which leaves credit to the operator. A string is the one
 * sentence about what is missing or wrong.
 */
export function paddleSettings(
  environment: Readonly<Record<string, string | undefined>>,
): PaddleSettings | null | string {
  const { api_key, webhook_secret, product_id } = PADDLE_VARIABLES;
  const given = [api_key, webhook_secret, product_id].filter((name) => (environment[name] ?? '') !== '');
  if (given.length === 0) return null;
  const [key, secret, product] = [environment[api_key], environment[webhook_secret], environment[product_id]];
  if (!key || !secret || !product)
    return `Paddle needs all of ${Object.values(PADDLE_VARIABLES).join(', ')}.`;
  const kind = environment.TDS_PADDLE_ENVIRONMENT ?? 'production';
  if (kind !== 'production' && kind !== 'sandbox')
    return 'TDS_PADDLE_ENVIRONMENT must be production or sandbox.';
  return { api_key: key, webhook_secret: secret, product_id: product, environment: kind };
}
