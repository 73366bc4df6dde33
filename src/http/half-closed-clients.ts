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
  /**
   * The functions that send waiting clients the interim response, by port; of two with one port the later
   * counts.
   */
  readonly #waiting = new Map<number, () => void>();
  #timer: Timer | undefined;

  /** Watches a client that waits for its response; `ask` sends it the interim response. */
  watch(client_port: number | undefined, ask: () => void): void {
    if (client_port !== undefined) this.#waiting.set(client_port, ask);
  }

  forget(client_port: number | undefined): void {
    if (client_port !== undefined) this.#waiting.delete(client_port);
  }

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
    if (this.#waiting.size === 0) return;
    for (const path of SOCKET_LISTS) {
      // Without IPv6 the second list does not exist.
      const list = await Bun.file(path)
        .text()
        .catch(() => '');
      for (const [, local = '', remote = ''] of list.matchAll(CLOSE_WAIT_LINE)) {
        if (Number.parseInt(local, 16) !== server_port) continue;
        const client_port = Number.parseInt(remote, 16);
        this.#waiting.get(client_port)?.();
        // One interim response is enough.
        this.#waiting.delete(client_port);
      }
    }
  }
}
