import { lookup } from 'node:dns/promises';
import type { AddressInfo, Server } from 'node:net';
import { systemErrorCode } from '../errors/system-error-code.ts';

/** The server cannot listen at the address; the message is one sentence with advice. */
export class ListenRefused extends Error {
  override readonly name: string = 'ListenRefused';
}

/** Another program already listens on the port. */
export class PortTaken extends ListenRefused {
  override readonly name = 'PortTaken';
}

/** The names of the options for the address. */
export interface ListenOptionNames {
  readonly host: string;
  readonly port: string;
}

/**
 * Starts to listen, and returns the port, which the system chooses for 0. Rejects with `ListenRefused`, which
 * names the options that choose the address, and with `PortTaken`.
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  options: ListenOptionNames = { host: '--host', port: '--port' },
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  try {
    // Bun would report another reason for a name without an address.
    await lookup(host);
    server.once('error', reject);
    // A second process on the same port would silently have rate limits of its own.
    server.listen({ host, port, exclusive: true }, resolve);
    await promise;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    if (code === 'EADDRINUSE') {
      throw new PortTaken(
        `Port ${port} is taken: stop the program that listens on it, or choose another with ${options.port}.`,
        { cause: error },
      );
    }
    const advice =
      code === 'EACCES'
        ? `choose one from 1024 on with ${options.port}, or give the program CAP_NET_BIND_SERVICE`
        : `choose another address with ${options.host}, or another port with ${options.port}`;
    throw new ListenRefused(`Port ${port} of ${host} cannot be listened on (${code}): ${advice}.`, {
      cause: error,
    });
  }
  return portOf(server);
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
