import type { Socket } from 'bun';

/** The cut at a client's next commit. Then everything passes again, or nothing does. */
export type Cut = 'before the commit' | 'after the commit' | 'after the commit, for good';

interface Ends {
  other: Socket<Ends> | undefined;
  /** The connection ends as soon as the server has said that it committed, and the client does not hear it. */
  is_committing: boolean;
  /** All the others end with it, and no new one is made. */
  is_last: boolean;
}

/** Bytes of PostgreSQL's messages: the text of a statement, and the answer to one that was done. */
const COMMIT_STATEMENT = 'COMMIT\0';

/** Stands between a client and a PostgreSQL server, and cuts connections at one place of their conversation. */
export class PostgresProxy implements Disposable {
  readonly #listener: Bun.TCPSocketListener<Ends>;
  #cut: Cut | null = null;
  cuts = 0;
  /** Changes what a client sends, as a pooler does. */
  rewrite: (bytes: Buffer) => Buffer = (bytes) => bytes;
  /** Runs between a commit and the cut after it. */
  beforeCut: () => Promise<void> = () => Promise.resolve();

  constructor(server_port: number) {
    this.#listener = Bun.listen<Ends>({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open: (client) => {
          client.data = { other: undefined, is_committing: false, is_last: false };
          client.pause();
          void this.#connect(client, server_port);
        },
        data: (client, bytes) => this.#fromClient(client, bytes),
        close: (client) => void client.data.other?.end(),
      },
    });
  }

  get port(): number {
    return this.#listener.port;
  }

  /** The same address by way of the proxy. */
  url(address: string): string {
    const url = new URL(address);
    url.port = String(this.port);
    return url.href;
  }

  /** Cuts the connection that sends the next commit. */
  cutNext(cut: Cut): void {
    this.#cut = cut;
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }

  async #connect(client: Socket<Ends>, port: number): Promise<void> {
    client.data.other = await Bun.connect<Ends>({
      hostname: '127.0.0.1',
      port,
      data: { other: client, is_committing: false, is_last: false },
      socket: {
        data: (server, bytes) => this.#fromServer(client, server, bytes),
        close: () => void client.end(),
      },
    });
    client.resume();
  }

  #fromClient(client: Socket<Ends>, bytes: Buffer): void {
    const server = client.data.other;
    if (this.#cut !== null && bytes.includes(COMMIT_STATEMENT)) {
      this.cuts += 1;
      if (this.#cut === 'before the commit') {
        this.#cut = null;
        client.terminate();
        server?.terminate();
        return;
      }
      client.data.is_committing = true;
      client.data.is_last = this.#cut === 'after the commit, for good';
      this.#cut = null;
    }
    server?.write(this.rewrite(bytes));
  }

  #fromServer(client: Socket<Ends>, server: Socket<Ends>, bytes: Buffer): void {
    if (!client.data.is_committing) {
      client.write(bytes);
      return;
    }
    // None of the answers since the commit was sent reaches the client.
    if (!bytes.includes(COMMIT_STATEMENT)) return;
    void this.beforeCut().then(() => {
      client.terminate();
      server.terminate();
      if (client.data.is_last) this.#listener.stop(true);
    });
  }
}
