import { readFileSync, rmSync } from 'node:fs';
import { MAIN } from './program.ts';
import { TINY_WEIGHTS } from './tiny-weights.ts';

/** The announcement of a start: to a program, on a terminal, and there with `--json`. */
const ANNOUNCED = /"msg":"serving"\}\n|\ncurl -s .*\r?\n|"engine"[\s\S]*\n\}/;

interface ChildServerOptions {
  /** The weights; null for the embedded ones, where the answers or the time that they take matter. */
  readonly model?: string | null;
  /** The command line of `tds`. */
  readonly program?: readonly string[];
  /** A command that runs it somewhere else, such as that of a network namespace. */
  readonly inside?: readonly string[];
  /** The place of its standard output, where nobody reads it from a pipe. */
  readonly stdout?: 'terminal' | number;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** A real `tds serve` in a process of its own, with everything that it prints. */
export class ChildServer implements AsyncDisposable {
  /** The key of the first start, where it was taken from its file. */
  key: string | null = null;
  readonly #child: Bun.Subprocess;
  readonly #read: Promise<unknown>;
  readonly #announced = Promise.withResolvers<void>();
  #is_announced = false;
  #output = '';

  constructor(
    data_directory: string,
    flags: readonly string[] = [],
    {
      model = TINY_WEIGHTS,
      program = [process.execPath, MAIN],
      inside = [],
      stdout,
      env = process.env,
    }: ChildServerOptions = {},
  ) {
    const command = [
      ...[...inside, ...program, 'serve', '--data', data_directory],
      ...['--port', '0', '--gpu', 'none', '--threads', '1'],
      ...(model === null ? [] : ['--model', model]),
      ...flags,
    ];
    if (stdout === 'terminal') {
      const decoder = new TextDecoder();
      const data = (_: unknown, bytes: Uint8Array) => this.#add(decoder.decode(bytes, { stream: true }));
      this.#child = Bun.spawn(command, { env, terminal: { cols: 2_000, data } });
      this.#read = this.#child.exited;
      return;
    }
    const child = Bun.spawn(command, { env, stdin: 'ignore', stdout: stdout ?? 'pipe', stderr: 'pipe' });
    this.#child = child;
    const streams = typeof child.stdout === 'object' ? [child.stdout, child.stderr] : [child.stderr];
    this.#read = Promise.all(streams.map((stream) => this.#readAll(stream)));
  }

  /** Resolves when it has announced itself, and takes requests. Rejects if it ends before that. */
  async ready(): Promise<this> {
    const ended = this.ended().then((code) => {
      throw new Error(`the server ended with ${code}: ${this.#output}`);
    });
    await Promise.race([this.#announced.promise, ended]);
    return this;
  }

  get address(): string {
    return this.#announcedText('address');
  }

  get metrics_url(): string {
    return this.#announcedText('metrics_url');
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Everything that it printed so far, on standard output and standard error. */
  output(): string {
    return this.#output;
  }

  /** How many open holds of an earlier process the start released. */
  get releasedAtStart(): number {
    return Number(/"holds":(\d+)/.exec(this.#output)?.[1] ?? 0);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  closeTerminal(): void {
    this.#child.terminal?.close();
  }

  /** Resolves with its exit code, once it has ended and everything that it printed is read. */
  async ended(): Promise<number> {
    await this.#read;
    return await this.#child.exited;
  }

  /** Ends it as an operator does, and returns its exit code. */
  stop(): Promise<number> {
    this.signal('SIGTERM');
    return this.ended();
  }

  /** Ends it as `kill -9` does. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #announcedText(name: string): string {
    const text = new RegExp(`"${name}":"([^"]+)"`).exec(this.#output)?.[1];
    if (text === undefined) throw new Error(`no ${name} in ${this.#output}`);
    return text;
  }

  async #readAll(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#add(decoder.decode(chunk, { stream: true }));
  }

  #add(text: string): void {
    this.#output += text;
    this.#is_announced ||= ANNOUNCED.test(this.#output);
    if (this.#is_announced) this.#announced.resolve();
  }
}

/**
 * Starts a server on the data directory, which it fills where it is empty; its temporary files go to
 * `temporary_directory`. The file with the first key is removed, as an owner does who keeps the key elsewhere.
 */
export async function startChildServer(
  data_directory: string,
  temporary_directory: string,
  flags: readonly string[] = [],
  {
    file_descriptors,
    embedded = false,
  }: { readonly file_descriptors?: number; readonly embedded?: boolean } = {},
): Promise<ChildServer> {
  const server = await new ChildServer(data_directory, ['--init', ...flags], {
    model: embedded ? null : TINY_WEIGHTS,
    inside:
      file_descriptors === undefined ? [] : ['sh', '-c', `ulimit -n ${file_descriptors}; exec "$0" "$@"`],
    env: { ...process.env, TMPDIR: temporary_directory, SQLITE_TMPDIR: temporary_directory },
  }).ready();
  const key_file = /"api_key_file":"([^"]+)"/.exec(server.output())?.[1];
  if (key_file === undefined) return server;
  server.key = readFileSync(key_file, 'utf8').trim();
  rmSync(key_file);
  return server;
}
