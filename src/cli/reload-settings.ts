import type { Effective } from '../config/effective.ts';
import { publicText } from '../config/setting.ts';
import type { ServeConfig } from '../config/settings.ts';
import { CertificateRefused } from '../http/certificate.ts';
import type { Log } from '../log/log.ts';
import { LOG_LEVELS, type LogLevel } from '../log/log-level.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import { CommandFailed } from './command-failed.ts';

/** The present settings. */
export interface ReadServeSettings {
  readonly effective: readonly Effective[];
  readonly warnings: readonly string[];
  readonly config: ServeConfig;
}

/**
 * Applies the settings that can change while requests are answered. Changes nothing where it rejects with
 * `CertificateRefused`.
 */
type Change = (config: ServeConfig) => Promise<void>;

/** The parts of a service that a reload uses. */
interface Reloaded {
  readonly log: Log & { level: LogLevel };
  readonly problems: Pick<Problems, 'report'>;
  /** Opens the log's file again, which external log rotation asks for by the same signal. Never rejects. */
  readonly reopenLog: () => Promise<void>;
  readonly change: Change;
}

/** Reads the settings again after the service has started, one reload after the other. */
export class Reloader {
  readonly #started = Promise.withResolvers<Reloaded>();
  #last: Promise<void> = Promise.resolve();

  /** `in_effect` are the settings at the start. */
  constructor(
    private in_effect: readonly Effective[],
    private readonly readAgain: () => ReadServeSettings,
  ) {}

  /**
   * Applies settings with `change` from now on, including earlier requests to reload. Reports unexpected
   * failures.
   */
  start(parts: Reloaded): void {
    this.#started.resolve(parts);
  }

  /** Requests a reload, which runs after the earlier ones. */
  reload(): void {
    this.#last = this.#last.then(async () => {
      await this.#reload(await this.#started.promise);
    });
  }

  async #reload({ log, problems, reopenLog, change }: Reloaded): Promise<void> {
    // First, because wrong settings must not fill the disk with a file that was moved away.
    await reopenLog();
    try {
      const { effective, warnings, config } = this.readAgain();
      const level_before = log.level;
      await change(config);
      // Lines about a change of the level are written if either level includes them.
      const { level } = log;
      log.level = LOG_LEVELS[Math.max(LOG_LEVELS.indexOf(level_before), LOG_LEVELS.indexOf(level))] ?? level;
      for (const warning of warnings) log.warn(warning);
      this.in_effect = this.in_effect.map((before) => inEffect(before, effective, log));
      log.info('the settings were read again');
      log.level = level;
    } catch (error) {
      if (!isExpected(error)) problems.report(inBackground('settings', error));
      log.error('the settings were read again and are wrong: all stays as it was', {
        reason: reasonOf(error),
      });
    }
  }
}

function isExpected(error: unknown): error is CommandFailed | CertificateRefused {
  return error instanceof CommandFailed || error instanceof CertificateRefused;
}

/** Returns one sentence. An unexpected error's text may contain a value, so only its kind is given. */
function reasonOf(error: unknown): string {
  if (isExpected(error)) return error.message;
  return `unexpected failure: ${error instanceof Error ? error.name : typeof error}`;
}

/** Returns the setting in effect: the new one, or the old one where a change needs a restart. */
function inEffect(
  before: Effective,
  effective: readonly Effective[],
  log: Pick<Log, 'info' | 'warn'>,
): Effective {
  const now = effective.find(({ name }) => name === before.name);
  if (now === undefined || now.text === before.text) return now ?? before;
  const { key, is_secret, on_reload } = before.setting;
  const printed = ({ setting, text }: Effective) => (text === null ? null : publicText(setting, text));
  const line = is_secret ? { setting: key } : { setting: key, before: printed(before), now: printed(now) };
  const is_switched = before.value === undefined || now.value === undefined;
  if (on_reload === 'restart' || (on_reload === 'applied_while_set' && is_switched)) {
    log.warn('a changed setting waits for a restart', line);
    return before;
  }
  log.info('a changed setting is applied', line);
  return now;
}
