import { MAIN } from '../support/program.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';

/** A real `tds serve` in a process of its own. */
export class ServerProcess implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>;
  readonly #address: Promise<string>;
  readonly #read: Promise<void>;
  #output = '';

  /** `inside` is a command that runs it somewhere else, such as that of a network namespace. */
  constructor(data_directory: string, more_flags: readonly string[] = [], inside: readonly string[] = []) {
    const options = {
      data: data_directory,
      model: TINY_WEIGHTS,
      port: '0',
      gpu: 'none',
      threads: '1',
      'log-level': 'warn',
    };
    const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    this.#child = Bun.spawn([...inside, process.execPath, MAIN, 'serve', '--json', ...flags, ...more_flags], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#read = this.#readOutput(resolve);
    this.#address = promise;
  }

  /** Resolves with the address when the server takes requests; with null when it was killed before that. */
  async ready(): Promise<string | null> {
    const address = await Promise.race([this.#address, this.#read.then(() => null)]);
    if (address === null && !this.#child.killed) throw new Error(`the server did not start: ${this.#output}`);
    return address;
  }

  /** How many open holds of an earlier process the start released. */
  get releasedAtStart(): number {
    return Number(/"holds":(\d+)/.exec(this.#output)?.[1] ?? 0);
  }

  /** Everything that it printed on standard output so far. */
  get output(): string {
    return this.#output;
  }

  /** Asks it to stop, as an operator or a service manager does, or lets it pause and go on. */
  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  /** Resolves with the exit code when the process has ended, and all of its output was read. */
  async ended(): Promise<number> {
    await this.#read;
    return await this.#child.exited;
  }

  /** Ends the process as `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #readOutput(onAddress: (address: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stdout) {
      this.#output += decoder.decode(chunk, { stream: true });
      const address = /"address":"([^"]+)"/.exec(this.#output)?.[1];
      if (address !== undefined) onAddress(address);
    }
  }
}
