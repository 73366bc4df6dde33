import { connect, createServer, type Server, type Socket } from 'node:net';

/** The interval of the checks of every node. */
const LOOK_EVERY_MS = 500;
/** The longest answer to a check. Then the node is removed. */
const LIVE_MS = 1_500;
/** The longest readiness check. A node needs up to two seconds to find that it is not ready. */
const READY_MS = 2_500;

interface Member {
  address: URL;
  is_live: boolean;
  is_ready: boolean;
  readonly connections: Set<Connection>;
}

interface Connection {
  readonly client: Socket;
  readonly node: Socket;
  is_answered: boolean;
}

function emptyResponse(status: string): string {
  return `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
}

/**
 * Balances connections over nodes in rotation. A node that does not answer is removed, and its connections are cut.
 * Nodes that are not ready get no connections while others are ready. A connection cut before its answer began gets a
 * 502 without `x-request-id`. Without a node it gets a 503.
 */
export class Balancer {
  readonly #server: Server;
  readonly #members = new Map<string, Member>();
  readonly #timer: ReturnType<typeof setInterval>;
  #turn = 0;

  private constructor() {
    this.#server = createServer((client) => this.#accept(client));
    this.#timer = setInterval(() => void this.#lookAtAll(), LOOK_EVERY_MS);
  }

  static async listen(): Promise<Balancer> {
    const balancer = new Balancer();
    const { promise, resolve } = Promise.withResolvers<void>();
    balancer.#server.listen(0, '127.0.0.1', resolve);
    await promise;
    return balancer;
  }

  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the balancer does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  /** Adds the node, or changes its address. It gets requests once it has answered. */
  async setAddress(name: string, address: string): Promise<void> {
    const member = {
      address: new URL(address),
      is_live: false,
      is_ready: false,
      connections: new Set<Connection>(),
    };
    this.#members.set(name, member);
    await look(member);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#server.close();
    for (const member of this.#members.values()) takeOut(member);
  }

  async #lookAtAll(): Promise<void> {
    await Promise.all([...this.#members.values()].map(look));
  }

  #next(): Member | undefined {
    const live = [...this.#members.values()].filter(({ is_live }) => is_live);
    const ready = live.filter(({ is_ready }) => is_ready);
    const chosen = ready.length > 0 ? ready : live;
    this.#turn += 1;
    return chosen[this.#turn % Math.max(1, chosen.length)];
  }

  #accept(client: Socket): void {
    const member = this.#next();
    client.on('error', () => client.destroy());
    if (member === undefined) {
      client.end(emptyResponse('503 Service Unavailable'));
      return;
    }
    const { hostname, port } = member.address;
    const node = connect({ host: hostname, port: Number(port) });
    const connection: Connection = { client, node, is_answered: false };
    member.connections.add(connection);
    client.on('data', (bytes) => {
      if (!node.destroyed) node.write(bytes);
    });
    node.on('data', (bytes) => {
      connection.is_answered = true;
      client.write(bytes);
    });
    node.on('end', () => finish(connection));
    node.on('error', () => finish(connection));
    node.on('close', () => {
      member.connections.delete(connection);
      finish(connection);
    });
    client.on('close', () => node.destroy());
  }
}

/** Ends the client's side, with a 502 if it has no answer. */
function finish({ client, node, is_answered }: Connection): void {
  node.destroy();
  if (client.writableEnded) return;
  if (is_answered) client.end();
  else client.end(emptyResponse('502 Bad Gateway'));
}

async function look(member: Member): Promise<void> {
  const [is_live, is_ready] = await Promise.all([
    isOk(new URL('/healthz', member.address), LIVE_MS),
    isOk(new URL('/readyz', member.address), READY_MS),
  ]);
  member.is_live = is_live;
  member.is_ready = is_ready;
  if (!is_live) takeOut(member);
}

async function isOk(url: URL, patience_ms: number): Promise<boolean> {
  try {
    const response = await fetch(url, { keepalive: false, signal: AbortSignal.timeout(patience_ms) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

function takeOut({ connections }: Member): void {
  for (const connection of connections) finish(connection);
}
