import { systemErrorCode } from '../errors/system-error-code.ts';
import { MINUTE_MS } from '../time/clock.ts';

/** The time after which the program counts as hung; an upload of the largest databases takes minutes. */
const LIMIT_MS = 30 * MINUTE_MS;

/** The operator's program failed; the message is a sentence. */
export class BackupCommandFailed extends Error {
  override readonly name = 'BackupCommandFailed';
}

/** The operator's program that copies each new backup off the machine. It gets the backup's path. */
export class BackupCommand {
  #pid: number | undefined;

  constructor(
    private readonly program: string,
    private readonly limit_ms = LIMIT_MS,
  ) {}

  /**
   * Resolves when the program has ended with 0. Rejects with `BackupCommandFailed`, also when it takes too
   * long.
   */
  async run(path: string): Promise<void> {
    const child = this.#start(path);
    this.#pid = child.pid;
    let is_late = false;
    const timer = setTimeout(() => {
      is_late = true;
      this.stop();
    }, this.limit_ms);
    timer.unref();
    const code = await child.exited;
    clearTimeout(timer);
    this.#pid = undefined;
    if (is_late) throw this.#failed(`was ended, because it took more than ${this.limit_ms / 1_000} seconds`);
    if (code !== 0) throw this.#failed(`ended with code ${code}`);
  }

  /** Ends the program and its children. */
  stop(): void {
    if (this.#pid === undefined) return;
    try {
      process.kill(-this.#pid, 'SIGKILL');
    } catch {
      // It has just ended by itself.
    }
  }

  #start(path: string): Bun.Subprocess {
    try {
      return Bun.spawn([this.program, path], {
        env: publicEnvironment(),
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: 'inherit',
        // A process group of its own, which can be ended as one.
        detached: true,
      });
    } catch (error) {
      throw this.#failed(`cannot be started (${systemErrorCode(error) ?? 'no code'})`);
    }
  }

  #failed(what: string): BackupCommandFailed {
    return new BackupCommandFailed(`The backup is made, but ${this.program} ${what}.`);
  }
}

/** Returns the environment without the service's own variables, which include passwords and keys. */
function publicEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('TDS_') && name !== 'PGPASSWORD'),
  );
}
