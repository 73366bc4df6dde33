import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { Refusal } from '../../src/errors/errors.ts';
import { Certificate } from '../../src/http/certificate.ts';
import type { HandlerFailure, RequestHandler } from '../../src/http/request-handler.ts';
import { errorResponse } from '../../src/http/responses.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../src/http/server.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Ends what a test began, such as its clients and servers. */
export const ends: (() => unknown)[] = [];
/** The failures that the servers of a test have told. */
export const reported: HandlerFailure[] = [];

/** Ends the clients of a test, then their servers. Resolves with the failures that those have told. */
export async function endAll(): Promise<readonly HandlerFailure[]> {
  for (const end of ends.splice(0).reverse()) await end();
  return reported.splice(0);
}

export type Handle = (request: Request) => Response | Promise<Response>;
export const ok: Handle = () => new Response('ok');
export const unauthorized: Handle = () => new Response('no', { status: 401 });

/** A server without a service behind it. */
export async function start(
  handle: RequestHandler['handle'],
  options: ServerOptions = {},
  port = 0,
): Promise<RunningServer> {
  const refuse = (refusal: Refusal) => errorResponse('req_test', refusal);
  const report = (failure: HandlerFailure) => void reported.push(failure);
  const server = await startServer({ handle, refuse, report }, { host: '127.0.0.1', port }, options);
  ends.push(() => server.stop());
  return server;
}

/** One client's connection, with what came over it. */
class Client<S extends Socket> {
  readonly closed: Promise<void>;
  received = '';

  constructor(readonly socket: S) {
    ends.push(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (data) => {
      this.received += data.toString('latin1');
    });
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  /** Waits until so many responses have come. */
  async responses(count: number): Promise<void> {
    while ((this.received.match(/HTTP\/1\.1 [2-5]\d\d/g) ?? []).length < count) {
      await new Promise((resolve) => this.socket.once('data', resolve));
    }
  }
}

type Address = Pick<RunningServer, 'address'>;
const placeOf = ({ address }: Address) => {
  const { hostname, port } = new URL(address);
  return { host: hostname, port: Number(port) };
};

export class RawClient extends Client<Socket> {
  constructor(server: Address, from = '127.0.0.1') {
    super(connect({ ...placeOf(server), localAddress: from, allowHalfOpen: true }));
    this.socket.on('end', () => this.socket.end());
  }
}

export class TlsClient extends Client<TLSSocket> {
  constructor(server: Address, options: ConnectionOptions = {}) {
    super(connectTls({ ...placeOf(server), rejectUnauthorized: false, ...options }));
  }
}

/** How a client reaches a server, and what the server needs for it. */
interface Transport {
  readonly name: string;
  readonly connect: (server: RunningServer) => RawClient | TlsClient;
  readonly options: () => Promise<ServerOptions>;
}

const TCP: Transport = {
  name: 'TCP',
  connect: (server) => new RawClient(server),
  options: () => Promise.resolve({}),
};

const TLS: Transport = {
  name: 'TLS',
  connect: (server) => new TlsClient(server),
  async options() {
    using folder = temporaryDirectory();
    const certificate = await Certificate.open(makeCertificate(folder.path, 'transport'));
    return { certificate };
  },
};

export const TRANSPORTS: readonly Transport[] = hasOpenssl ? [TCP, TLS] : [TCP];

/** A handler that answers when it is told to. */
export function held() {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<Request>();
  return {
    begun: begun.promise,
    answer: gate.resolve,
    handle: async (request: Request) => {
      begun.resolve(request);
      await gate.promise;
      return new Response('at last');
    },
  };
}
