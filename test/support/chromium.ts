import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { POLL_MS } from './service.ts';

/** The browser's program; null where there is none. */
export function chromiumPath(): string | null {
  return Bun.which('chromium') ?? Bun.which('chromium-browser') ?? Bun.which('google-chrome');
}

const Targets = Type.Array(Type.Object({ type: Type.String(), webSocketDebuggerUrl: Type.String() }));
const Message = Type.Object({
  id: Type.Optional(Type.Integer()),
  method: Type.Optional(Type.String()),
  params: Type.Optional(Type.Unknown()),
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(Type.Object({ message: Type.String() })),
});
const RequestSent = Type.Object({ request: Type.Object({ url: Type.String() }) });
const Entry = Type.Object({
  entry: Type.Object({ level: Type.String(), text: Type.String(), url: Type.Optional(Type.String()) }),
});
const Thrown = Type.Object({ exceptionDetails: Type.Object({ text: Type.String() }) });
const Evaluated = Type.Object({ result: Type.Object({ value: Type.Optional(Type.Unknown()) }) });

/** One page of a real, headless Chromium with a profile of its own, driven over the DevTools protocol. */
export class ChromiumPage implements AsyncDisposable {
  /** Every URL that the page asked for. */
  readonly requested: string[] = [];
  /** What the browser complained about: failed loads, refusals by the content security policy, uncaught errors. */
  readonly complaints: string[] = [];
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();
  #next_id = 1;

  private constructor(
    private readonly child: Bun.Subprocess,
    private readonly profile: string,
    private readonly socket: WebSocket,
  ) {
    socket.addEventListener('message', ({ data }) => this.#receive(String(data)));
  }

  static async open(program: string): Promise<ChromiumPage> {
    const profile = mkdtempSync(join(tmpdir(), 'tds-chromium-'));
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
    ];
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
    const child = Bun.spawn(
      [program, ...flags, ...quiet, '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'],
      { stdout: 'ignore', stderr: 'ignore' },
    );
    const port = await debuggingPort(profile, child);
    const targets: unknown = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    const page = checked(Targets, targets).find(({ type }) => type === 'page');
    if (page === undefined) throw new Error('Chromium has no page');
    const socket = new WebSocket(page.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', reject, { once: true });
    });
    const opened = new ChromiumPage(child, profile, socket);
    for (const domain of ['Network', 'Page', 'Runtime', 'Log']) await opened.#send(`${domain}.enable`);
    return opened;
  }

  async navigate(url: string): Promise<void> {
    await this.#send('Page.navigate', { url });
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const answer = await this.#send('Runtime.evaluate', { expression, returnByValue: true });
    return checked(Evaluated, answer).result.value;
  }

  /** Resolves when the expression is true in the page. */
  async until(expression: string): Promise<void> {
    while ((await this.evaluate(expression)) !== true) await Bun.sleep(POLL_MS * 10);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    this.child.kill('SIGKILL');
    await this.child.exited;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #send(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const id = this.#next_id++;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(id, answer);
    this.socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  #receive(text: string): void {
    const { id, method, params, result, error } = checked(Message, JSON.parse(text));
    if (id !== undefined) {
      const answer = this.#answers.get(id);
      this.#answers.delete(id);
      if (error === undefined) answer?.resolve(result);
      else answer?.reject(new Error(error.message));
      return;
    }
    if (method === 'Network.requestWillBeSent') this.requested.push(checked(RequestSent, params).request.url);
    if (method === 'Log.entryAdded') {
      const { entry } = checked(Entry, params);
      if (entry.level === 'error') this.complaints.push(`${entry.text} ${entry.url ?? ''}`);
    }
    if (method === 'Runtime.exceptionThrown')
      this.complaints.push(checked(Thrown, params).exceptionDetails.text);
  }
}

/** The port that Chromium chose; it writes it into its profile when it is ready. */
async function debuggingPort(profile: string, child: Bun.Subprocess): Promise<number> {
  for (;;) {
    try {
      const [port] = readFileSync(join(profile, 'DevToolsActivePort'), 'utf8').split('\n');
      if (port !== undefined && port !== '') return Number(port);
    } catch {
      if (child.exitCode !== null) throw new Error(`Chromium ended with ${child.exitCode}`);
    }
    await Bun.sleep(POLL_MS);
  }
}

function checked<T extends TSchema>(schema: T, value: unknown): Static<T> {
  if (!Value.Check(schema, value)) throw new Error(`Chromium said ${JSON.stringify(value)?.slice(0, 200)}`);
  return value;
}
