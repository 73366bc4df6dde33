import { withPlainUrl } from './target.ts';

/** Another program listens on the port already. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
}

/** A listening server. */
export interface RunningServer {
  /** Where it can be reached, without a slash at the end. */
  readonly address: string;
  /** Takes no new connection, lets the requests in flight finish for two minutes, then closes what is left. */
  stop(): Promise<void>;
}

/** How long a connection may say nothing between requests. */
const IDLE_TIMEOUT_S = 255;
/** While a request is answered there is no limit: on a CPU a long one takes minutes, and it would be billed unseen. */
const NO_TIMEOUT_S = 0;

/** Our own body reader refuses anything above 1 MB with the right body; Bun's own limit must never come first. */
const BODY_BYTES_NEVER_REACHED = Number.MAX_SAFE_INTEGER;

/** How long a stop waits for the requests in flight: as long as clients are told to wait for an answer. */
const DRAIN_MAX_MS = 120_000;
/** How often the end of the requests in flight is looked for while stopping. */
const DRAIN_POLL_MS = 20;

/** Serves `handle` over HTTP. Throws `PortTaken`. */
export function startServer(
  handle: (request: Request, peer_address: string | null) => Response | Promise<Response>,
  address: { readonly host: string; readonly port: number },
): RunningServer {
  const server = listen(handle, address);
  return {
    address: `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${server.port}`,
    async stop() {
      const stopped = server.stop(false);
      const deadline_ms = performance.now() + DRAIN_MAX_MS;
      while (server.pendingRequests > 0 && performance.now() < deadline_ms) await Bun.sleep(DRAIN_POLL_MS);
      await server.stop(true);
      await stopped;
    },
  };
}

function listen(
  handle: (request: Request, peer_address: string | null) => Response | Promise<Response>,
  { host, port }: { readonly host: string; readonly port: number },
) {
  try {
    return Bun.serve({
      hostname: host,
      port,
      // A second process on the same port would keep its own rate limits without anybody noticing.
      reusePort: false,
      idleTimeout: IDLE_TIMEOUT_S,
      maxRequestBodySize: BODY_BYTES_NEVER_REACHED,
      fetch: (request, server) => {
        server.timeout(request, NO_TIMEOUT_S);
        return handle(withPlainUrl(request), server.requestIP(request)?.address ?? null);
      },
    });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
      throw new PortTaken(
        `Port ${port} is taken: stop the program that listens on it, or choose another with --port.`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}
