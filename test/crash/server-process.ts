import { join } from 'node:path';

const MAIN = join(import.meta.dir, '../../src/main.ts');

/** A real `tds serve` in a process of its own. */
export class ServerProcess implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>;
  readonly #ready: Promise<string | null>;
  #output = '';

  constructor(data_directory: string, model_path: string) {
    const options = {
      data: data_directory,
      model: model_path,
      port: '0',
      gpu: 'none',
      threads: '1',
      'log-level': 'warn',
    };
    const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    this.#child = Bun.spawn([process.execPath, MAIN, 'serve', '--json', ...flags], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    this.#ready = this.#readAddress();
  }

  /** Resolves with the address when the server takes requests; with null when it was killed before that. */
  ready(): Promise<string | null> {
    return this.#ready;
  }

  /** How many open holds of an earlier process the start released. */
  get releasedAtStart(): number {
    return Number(/"holds":(\d+)/.exec(this.#output)?.[1] ?? 0);
  }

  /** Ends the process as `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #readAddress(): Promise<string | null> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stdout) {
      this.#output += decoder.decode(chunk, { stream: true });
      const address = /"address": "([^"]+)"/.exec(this.#output)?.[1];
      if (address !== undefined) return address;
    }
    if (!this.#child.killed) throw new Error(`the server did not start: ${this.#output}`);
    return null;
  }
}
