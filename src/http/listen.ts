import type { AddressInfo, Server } from 'node:net';
import { systemErrorCode } from '../system-error-code.ts';

/** Another program listens on the port already. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
}

/**
 * Begins to listen, and returns the port, which the system chooses for 0. Rejects with `PortTaken`, which names the
 * option that chooses the port.
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  option = '--port',
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  // A second process on the same port would keep its own rate limits without anybody noticing.
  server.listen({ host, port, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    if (systemErrorCode(error) === 'EADDRINUSE') {
      throw new PortTaken(
        `Port ${port} is taken: stop the program that listens on it, or choose another with ${option}.`,
        { cause: error },
      );
    }
    throw error;
  }
  return portOf(server);
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
