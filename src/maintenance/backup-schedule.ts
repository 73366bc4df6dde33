import type { Log } from '../log/log.ts';
import type { BackupState } from '../observability/metrics.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import { BackupFailed, type BackupFile, type Backups } from '../store/backups.ts';
import { type Clock, DAY_MS } from '../time/clock.ts';
import type { BackupCommand } from './backup-command.ts';

/**
 * The interval of checks. One long timer would not do, because the clock may be set, and the computer may
 * sleep.
 */
const LOOK_EVERY_MS = 60_000;
/** The delay between a failure and the next try. */
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
 * command gets each of them, one at a time; while it runs, further backups are made, and then it gets the
 * newest. After a restart it gets the newest one if it has not succeeded with that. A failure of either is
 * reported as a problem and retried, and so is a backup that takes too long.
 */
export class BackupSchedule {
  #timer: ReturnType<typeof setInterval> | undefined;
  #has_stopped = false;
  readonly #backup: Tries;
  readonly #command: Tries;
  /** The monotonic time of the last report that a backup is late. */
  #told_late_ms = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: ScheduleParts) {
    const { clock, every_ms } = parts;
    const retry_after_ms = Math.min(RETRY_AFTER_MS, every_ms);
    this.#backup = new Tries(clock, retry_after_ms);
    this.#command = new Tries(clock, retry_after_ms);
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), Math.min(LOOK_EVERY_MS, this.parts.every_ms));
    this.#timer.unref();
    void this.look();
  }

  /** Makes a backup if one is due, and runs the command if it has not succeeded with it. Never rejects. */
  async look(): Promise<void> {
    this.#reportIfLate();
    await this.#backup.run(
      () => this.#makeIfDue(),
      (error) => {
        const { directory } = this.parts.backups;
        this.#report(new BackupFailed(`No backup was made in ${directory}.`, { cause: error }));
      },
    );
    await this.#command.run(
      () => this.#runCommand(),
      (error) => this.#report(error),
    );
  }

  async #makeIfDue(): Promise<TryResult> {
    const { backups, every_ms, clock, log } = this.parts;
    const now_ms = clock.now_ms();
    const newest = backups.newest(now_ms);
    const is_due = newest === null || now_ms - newest.at_ms >= every_ms;
    if (!is_due || this.#has_stopped) return 'not needed';
    await backups.make(now_ms);
    log.info('backed up', { duration_ms: Math.round(clock.now_ms() - now_ms) });
    return 'done';
  }

  async #runCommand(): Promise<TryResult> {
    const { backups, command, clock } = this.parts;
    if (command === null || this.#has_stopped) return 'not needed';
    // Read from the disk, because an earlier process may have ended before its copy did.
    const path = backups.uncopied(clock.now_ms());
    if (path === null) return 'not needed';
    await command.run(path);
    backups.noteCopied(path);
    return 'done';
  }

  /** Reports a backup that is under way since before the next one was due, at least once a day. */
  #reportIfLate(): void {
    const { clock, every_ms, backups } = this.parts;
    const now_ms = clock.monotonic_ms();
    const is_late = (this.#backup.running_since_ms ?? now_ms) <= now_ms - every_ms;
    if (!is_late || now_ms - this.#told_late_ms < Math.min(every_ms, DAY_MS)) return;
    this.#told_late_ms = now_ms;
    this.#report(new BackupFailed(`A backup in ${backups.directory} does not end, and the next one is due.`));
  }

  #report(error: unknown): void {
    if (this.#has_stopped) return;
    this.parts.problems.report(inBackground('backup', error));
  }

  /** Returns the state of the backups. */
  state(): BackupState {
    const { backups, every_ms, clock } = this.parts;
    const has_failed = this.#backup.has_failed || this.#command.has_failed;
    return { every_ms, newest: newestOf(backups, clock.now_ms()), has_failed };
  }

  stop(): void {
    this.#has_stopped = true;
    clearInterval(this.#timer);
    this.parts.backups.stop();
    this.parts.command?.stop();
  }
}

type TryResult = 'done' | 'not needed';

/** The tries of one piece of work: one at a time, and none soon after a failure. */
class Tries {
  #running_since_ms: number | null = null;
  #has_failed = false;
  #not_before_ms = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly retry_after_ms: number,
  ) {}

  /** The monotonic time at which the present try began; null without one. */
  get running_since_ms(): number | null {
    return this.#running_since_ms;
  }

  /** True from a failure to the next success. */
  get has_failed(): boolean {
    return this.#has_failed;
  }

  /** Does the work, unless it is under way or has just failed. Never rejects. */
  async run(work: () => Promise<TryResult>, onFailure: (error: unknown) => void): Promise<void> {
    const now_ms = this.clock.monotonic_ms();
    if (this.#running_since_ms !== null || now_ms < this.#not_before_ms) return;
    this.#running_since_ms = now_ms;
    try {
      if ((await work()) === 'done') this.#has_failed = false;
    } catch (error) {
      this.#has_failed = true;
      this.#not_before_ms = this.clock.monotonic_ms() + this.retry_after_ms;
      onFailure(error);
    } finally {
      this.#running_since_ms = null;
    }
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
