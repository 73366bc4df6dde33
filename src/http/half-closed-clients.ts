import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';

/** The interval at which the lists of sockets are read. */
const LOOK_MS = 1_000;

/** Where Linux lists the sockets that this process can see. */
const SOCKET_LISTS = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/**
 * A line of those lists: the local and the remote port, in hexadecimal, of a socket whose other side sent its
 * end.
 */
const CLOSE_WAIT_LINE = /^ *\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:([\dA-F]{4}) 08 /gm;

/**
 * Distinguishes clients that are gone from clients that only have nothing more to send. Both have sent a FIN,
 * and node:http reports neither while a request is answered. Therefore a client that sent a FIN gets an
 * interim `100 Continue`. A client that waits for its response skips it (RFC 9110, 15.2), and the system of a
 * client that is gone resets the connection.
 */
export class HalfClosedClients {
  /** Only Linux shows a received FIN; elsewhere a client that sent one counts as gone. */
  readonly is_supported = process.platform === 'linux';
  #timer: Timer | undefined;

  constructor(private readonly connections: Connections) {}

  /** Starts checking the connections of this port. */
  start(server_port: number): void {
    if (!this.is_supported) return;
    this.#timer = setInterval(() => void this.#look(server_port), LOOK_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(server_port: number): Promise<void> {
    if (this.connections.answering().length === 0) return;
    const ended = new Set<number>();
    for (const path of SOCKET_LISTS) {
      // Without IPv6 the second list does not exist.
      const list = await Bun.file(path)
        .text()
        .catch(() => '');
      for (const [, local = '', remote = ''] of list.matchAll(CLOSE_WAIT_LINE)) {
        if (Number.parseInt(local, 16) === server_port) ended.add(Number.parseInt(remote, 16));
      }
    }
    for (const { port, newest_askable } of this.connections.answering()) {
      if (port !== undefined && ended.has(port) && newest_askable !== null) askClient(newest_askable);
    }
  }
}

/** Asks a client that may be gone, by an interim response, or by an empty line of a stream that has begun. */
function askClient(exchange: Exchange): void {
  const { reply } = exchange;
  if (exchange.is_asked || exchange.is_closed) return;
  exchange.is_asked = true;
  if (!reply.headersSent) reply.writeContinue();
  else if (exchange.is_stream && !reply.writableEnded) reply.write('\n');
}
