import type { Clock } from '../clock.ts';
import type { Problems } from '../problems/problems.ts';
import { type BackupCommand, BackupCommandFailed } from './backup-command.ts';
import { BackupFailed, type BackupFile, type Backups } from './backups.ts';
import type { Log } from './log.ts';
import type { BackupState } from './metrics.ts';

/**
 * The interval of checks. One long timer would not do, because the clock may be set, and the computer may
 * sleep.
 */
const LOOK_EVERY_MS = 60_000;
/** The delay between a failed backup and the next try. */
const RETRY_AFTER_MS = 10 * 60_000;

interface ScheduleParts {
  readonly backups: Backups;
  /** The command that gets the path of each backup; null for none. */
  readonly command: Pick<BackupCommand, 'run' | 'stop'> | null;
  readonly every_ms: number;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info'>;
  readonly problems: Problems;
}

/**
 * Makes a backup when the newest one is too old, so that restarts neither skip nor repeat one. The operator's
 * command gets each of them. A failure of either is reported as a problem and retried.
 */
export class BackupSchedule {
  #timer: ReturnType<typeof setInterval> | undefined;
  #is_running = false;
  #has_stopped = false;
  #has_failed = false;
  #not_before_ms = Number.NEGATIVE_INFINITY;
  /** The path of the newest backup until the command has succeeded. */
  #untaken: string | null = null;

  constructor(private readonly parts: ScheduleParts) {}

  start(): void {
    this.#timer = setInterval(() => this.look(), Math.min(LOOK_EVERY_MS, this.parts.every_ms));
    this.#timer.unref();
    void this.look();
  }

  /** Makes a backup if one is due. Never rejects. */
  async look(): Promise<void> {
    const { backups, command, every_ms, clock, log, problems } = this.parts;
    if (this.#is_running || this.#has_stopped || clock.monotonic_ms() < this.#not_before_ms) return;
    this.#is_running = true;
    try {
      const now_ms = clock.now_ms();
      const newest = backups.newest(now_ms);
      const is_due = newest === null || now_ms - newest.at_ms >= every_ms;
      if (!is_due && this.#untaken === null) return;
      if (is_due) {
        this.#untaken = await backups.make(now_ms);
        log.info('backed up', { duration_ms: Math.round(clock.now_ms() - now_ms) });
      }
      if (this.#untaken !== null && !this.#has_stopped) await command?.run(this.#untaken);
      this.#untaken = null;
      this.#has_failed = false;
    } catch (error) {
      if (this.#has_stopped) return;
      this.#not_before_ms = clock.monotonic_ms() + Math.min(RETRY_AFTER_MS, every_ms);
      this.#has_failed = true;
      const failed =
        error instanceof BackupCommandFailed
          ? error
          : new BackupFailed(`No backup was made in ${backups.directory}.`, { cause: error });
      problems.report({ request_id: null, step: 'backup', code: null, error: failed });
    } finally {
      this.#is_running = false;
    }
  }

  /** Returns the state of the backups. */
  state(): BackupState {
    const { backups, every_ms, clock } = this.parts;
    return { every_ms, newest: newestOf(backups, clock.now_ms()), has_failed: this.#has_failed };
  }

  stop(): void {
    this.#has_stopped = true;
    clearInterval(this.#timer);
    this.parts.backups.stop();
    this.parts.command?.stop();
  }
}

/** Returns the newest backup; null also where it cannot be read, such as when its disk is gone. */
function newestOf(backups: Backups, now_ms: number): BackupFile | null {
  try {
    return backups.newest(now_ms);
  } catch {
    // The next try to make a backup reports it.
    return null;
  }
}
