import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectFile } from '../../src/files/project-root.ts';
import { finished } from '../../test/support/finished.ts';

const POLL_MS = 20;
/** The longest start, stop or reload on a busy machine. */
const PATIENCE_MS = 120_000;
/** The margin around a change, for requests that began shortly before it or meet a closed connection. */
const MARGIN_MS = 2_000;
const RELOADED = '"msg":"the settings were read again';

/** A time window in which an outcome is allowed, in Unix milliseconds. */
interface Window {
  readonly from_ms: number;
  to_ms: number;
}

/** One process of the service, from its readiness to its end. */
export interface Life {
  readonly pid: number;
  readonly from_ms: number;
  to_ms: number;
}

/** A real `tds serve` on a real data directory, which is killed and started again on the same port. */
export class Served {
  readonly root = mkdtempSync(join(tmpdir(), 'tds-soak-'));
  readonly data = join(this.root, 'data');
  readonly log = join(this.root, 'log.jsonl');
  readonly errors = join(this.root, 'standard-error.txt');
  readonly lives: Life[] = [];
  readonly #config = join(this.root, 'tds.toml');
  readonly #downs: Window[] = [];
  readonly #short_queues: Window[] = [];
  #child: Bun.Subprocess | null = null;
  #up = Promise.withResolvers<void>();
  #port = '0';

  /** `program` is the command line of `tds`. */
  constructor(private readonly program: readonly string[]) {}

  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The process that accepts requests; null for none. */
  get life(): Life | null {
    const last = this.lives.at(-1);
    return last?.to_ms === Number.POSITIVE_INFINITY ? last : null;
  }

  /** Resolves once the service accepts requests. */
  up(): Promise<void> {
    return this.#up.promise;
  }

  /** Returns true if the service was down, or just started, at some time between the two. */
  wasDown(from_ms: number, to_ms: number): boolean {
    return overlaps(this.#downs, from_ms, to_ms);
  }

  /** Returns true if its queue was short at some time between the two. */
  hadShortQueue(from_ms: number, to_ms: number): boolean {
    return overlaps(this.#short_queues, from_ms, to_ms);
  }

  get kills(): readonly Readonly<Window>[] {
    return this.#downs;
  }

  /** Runs `tds …` on the data directory, or another one, and resolves with its output. Rejects if it fails. */
  async tds(args: readonly string[], data = this.data): Promise<unknown> {
    const child = Bun.spawn([...this.program, ...args, '--data', data, '--json'], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      detached: true,
    });
    const { code, stdout, stderr } = await finished(child);
    if (code !== 0) throw new Error(`"tds ${args.join(' ')}" exited with ${code}: ${stderr}${stdout}`);
    return JSON.parse(stdout);
  }

  /** Starts the service with settings that a reload may change. Rejects if it does not accept requests. */
  async start(settings: string): Promise<void> {
    writeFileSync(this.#config, settings, { mode: 0o600 });
    const flags = ['--json', '--port', this.#port, '--gpu', 'none', '--threads', '1'];
    const child = Bun.spawn(
      [
        ...this.program,
        ...['serve', '--data', this.data, '--config', this.#config, '--log-file', this.log],
        ...flags,
      ],
      // The service has its own process group, because Ctrl-C is for the soak, which then ends it.
      { stdin: 'ignore', stdout: 'pipe', stderr: Bun.file(this.errors), detached: true },
    );
    this.#child = child;
    const address = await addressOf(child);
    this.#port = new URL(address).port;
    const now_ms = Date.now();
    const down = this.#downs.at(-1);
    if (down !== undefined) down.to_ms = now_ms;
    this.lives.push({ pid: child.pid, from_ms: now_ms, to_ms: Number.POSITIVE_INFINITY });
    this.#up.resolve();
  }

  /** Kills the service with SIGKILL. */
  async kill(): Promise<void> {
    this.#up = Promise.withResolvers();
    this.#downs.push({ from_ms: Date.now(), to_ms: Number.POSITIVE_INFINITY });
    this.#child?.kill('SIGKILL');
    await this.#end();
  }

  /** Stops the service with SIGTERM. Resolves with its exit code. */
  async stop(): Promise<number | null> {
    this.#child?.kill('SIGTERM');
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), PATIENCE_MS);
    const code = await this.#end();
    clearTimeout(late);
    return code;
  }

  /** Reloads the settings. Resolves with true if they were accepted. Rejects if the service reports nothing. */
  async reload(settings: string, has_short_queue = false): Promise<boolean> {
    const now_ms = Date.now();
    const short = this.#short_queues.at(-1);
    if (has_short_queue) this.#short_queues.push({ from_ms: now_ms, to_ms: Number.POSITIVE_INFINITY });
    writeFileSync(this.#config, settings, { mode: 0o600 });
    const read = Bun.file(this.log).size;
    this.#child?.kill('SIGHUP');
    for (const end_ms = now_ms + PATIENCE_MS; Date.now() < end_ms; await Bun.sleep(POLL_MS)) {
      const text = await Bun.file(this.log).slice(read).text();
      const line = text.split('\n').find((one) => one.includes(RELOADED));
      if (line === undefined) continue;
      if (!has_short_queue && short !== undefined) short.to_ms = Math.min(short.to_ms, Date.now());
      return !line.includes('are wrong');
    }
    throw new Error('The service did not say that it read its settings again.');
  }

  /** Removes everything. */
  remove(): void {
    this.#child?.kill('SIGKILL');
    rmSync(this.root, { recursive: true, force: true });
  }

  async #end(): Promise<number | null> {
    const code = (await this.#child?.exited) ?? null;
    const life = this.life;
    if (life !== null) life.to_ms = Date.now();
    return code;
  }
}

/** Returns the command line of `tds`: the executable, or the checkout. */
export function programOf(executable: string | undefined): readonly string[] {
  return executable === undefined ? [process.execPath, projectFile('src/main.ts')] : [executable];
}

async function addressOf(child: Bun.Subprocess<'ignore', 'pipe', Bun.BunFile>): Promise<string> {
  let printed = '';
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    printed += decoder.decode(chunk, { stream: true });
    const address = /"address":"([^"]+)"/.exec(printed)?.[1];
    if (address !== undefined) return address;
  }
  throw new Error(`The service did not start: ${printed}`);
}

function overlaps(windows: readonly Window[], from_ms: number, to_ms: number): boolean {
  return windows.some((window) => window.from_ms <= to_ms && from_ms <= window.to_ms + MARGIN_MS);
}
