import { connect, createServer, type Server, type Socket } from 'node:net';

/** The address of the current primary for a node. It can be cut silently: connections stay open, and nothing passes. */
export class DatabaseAddress {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #target_port: number;
  #is_cut = false;

  private constructor(target_port: number) {
    this.#target_port = target_port;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async listen(target_port: number): Promise<DatabaseAddress> {
    const address = new DatabaseAddress(target_port);
    const { promise, resolve } = Promise.withResolvers<void>();
    address.#server.listen(0, '127.0.0.1', resolve);
    await promise;
    return address;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the address is not listened at');
    return address.port;
  }

  /** Points new connections to that server, and closes the others. */
  pointTo(port: number): void {
    this.#target_port = port;
    this.#endAll();
  }

  cut(): void {
    this.#is_cut = true;
    for (const [client, server] of this.#pairs) {
      client.pause();
      server.pause();
    }
  }

  restore(): void {
    this.#is_cut = false;
    for (const [client, server] of this.#pairs) {
      client.resume();
      server.resume();
    }
  }

  close(): void {
    this.#server.close();
    this.#endAll();
  }

  #endAll(): void {
    for (const [client, server] of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }

  #accept(client: Socket): void {
    const server = connect({ host: '127.0.0.1', port: this.#target_port });
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => from.destroy());
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
    if (this.#is_cut) {
      client.pause();
      server.pause();
    }
  }
}
