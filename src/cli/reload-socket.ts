import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { OPERATOR } from '../access/actor.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { checkedJson } from '../json/checked-json.ts';
import { oneOf } from '../json/one-of.ts';
import { LIFECYCLE_STATES } from '../served-models/model-answerer.ts';
import { ReloadRefused, type ReloadRequest } from '../served-models/reload.ts';
import { CommandFailed } from './command-failed.ts';

/**
 * The socket in the data directory of a running server. A user who may write to it may send these requests.
 */
const FILE = 'reload.sock';
const FILE_MODE = 0o600;
/** The most operators who wait at once. */
const CONNECTIONS_MAX = 16;
/** Longer than any path, and than the states of a thousand models. */
const LINE_BYTES_MAX = 262_144;

/** The longest wait for what a server answers at once: one that hangs must not hold a command up. */
const ANSWER_MS = 5_000;

/** Request and reply are one line each. */
const ModelRequest = Type.Object({ id: Type.String(), weights: Type.Union([Type.String(), Type.Null()]) });
/** The message that keys were revoked, so that cached lookups are invalid. */
const KEYS_CHANGED = { keys: 'changed' } as const;
const KeysRequest = Type.Object({ keys: Type.Literal(KEYS_CHANGED.keys) });
/** A request for the states of the models. */
const MODEL_STATES = { models: 'states' } as const;
const StatesRequest = Type.Object({ models: Type.Literal(MODEL_STATES.models) });
const Request = Type.Union([ModelRequest, KeysRequest, StatesRequest]);
const Reply = Type.Object({
  /** The reason why the old weights stay; null when the new ones are in use. */
  refusal: Type.Union([Type.String(), Type.Null()]),
});

const States = Type.Object({
  states: Type.Array(
    Type.Object({
      id: Type.String(),
      state: oneOf(LIFECYCLE_STATES),
      load_error: Type.Union([Type.String(), Type.Null()]),
      /** The bytes of weights, keys and values, and kept prefixes; null where none are loaded in this process. */
      memory_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
    }),
  ),
});

/** A model as the running service has it. */
export type ServedModelState = Static<typeof States>['states'][number];

/** The server's handlers of requests. */
export interface ReloadHandlers {
  readonly reload: (request: ReloadRequest) => Promise<void>;
  /** Forgets all cached keys, from the next request on. */
  readonly forgetKeys: () => void;
  readonly modelStates: () => Promise<readonly ServedModelState[]>;
}

export interface ReloadListener {
  /** Answers the waiting requests. Call it when no reload can begin any more. */
  stop(): Promise<void>;
}

/**
 * Receives requests of other processes to reload a model, or to read keys again. A process that can write to
 * the data directory acts for the operator. Rejects when the socket cannot be created there, for instance
 * because the path is too long.
 */
export async function startReloadListener(data: string, handlers: ReloadHandlers): Promise<ReloadListener> {
  const path = join(data, FILE);
  // A killed server left it; this one has claimed the data directory.
  rmSync(path, { force: true });
  const reloads = new Set<Promise<void>>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    void firstLine(socket).then(
      (line) => {
        const answered = answer(socket, line, handlers).finally(() => reloads.delete(answered));
        reloads.add(answered);
      },
      // Nothing is lost: the client has gone without a request.
      () => socket.destroy(),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, FILE_MODE);
  return {
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(reloads);
      for (const socket of sockets) socket.destroySoon();
      await closed;
      rmSync(path, { force: true });
    },
  };
}

/** Handles a request. Never rejects: the reload goes on when the client has gone. */
async function answer(
  socket: Socket,
  line: string,
  { reload, forgetKeys, modelStates }: ReloadHandlers,
): Promise<void> {
  const request = checkedJson(Request, line);
  if (request === undefined) {
    socket.destroy();
    return;
  }
  if ('keys' in request) {
    forgetKeys();
    end(socket, null);
    return;
  }
  if ('models' in request) {
    const states = await modelStates().catch(() => null);
    if (states === null) socket.destroy();
    else socket.end(`${JSON.stringify({ states })}\n`);
    return;
  }
  const refusal = await reload({ ...request, actor: OPERATOR }).then(
    () => null,
    (error: unknown) => {
      if (error instanceof ReloadRefused) return error.message;
      return `The service failed to reload ${request.id}: its log says why.`;
    },
  );
  end(socket, refusal);
}

function end(socket: Socket, refusal: string | null): void {
  const reply: Static<typeof Reply> = { refusal };
  socket.end(`${JSON.stringify(reply)}\n`);
}

/**
 * Tells the server on the data directory to read keys again. Returns false where none can be reached; any
 * other server does so within a minute by itself.
 */
export async function askToForgetKeys(data: string): Promise<boolean> {
  return (await ask(data, KEYS_CHANGED, Reply)) !== undefined;
}

/** Returns the sentence on when a revoked key, or several, are refused, by the result of `askToForgetKeys`. */
export function whenRefused(keys: 'it' | 'them', data: string, is_asked: boolean): string {
  return is_asked
    ? `The service on ${data} refuses ${keys} from now on; other nodes do within 60 seconds.`
    : `No service was reached on ${data}; those elsewhere refuse ${keys} within 60 seconds.`;
}

/** Asks the server on the data directory how its models stand. Returns null where none listens or it cannot be asked. */
export async function askForModelStates(data: string): Promise<readonly ServedModelState[] | null> {
  return (await ask(data, MODEL_STATES, States))?.states ?? null;
}

async function ask<Schema extends TSchema>(
  data: string,
  request: Readonly<Record<string, string>>,
  schema: Schema,
): Promise<Static<Schema> | undefined> {
  const socket = connect(join(data, FILE));
  const timer = setTimeout(() => socket.destroy(new Error('The server does not answer.')), ANSWER_MS);
  try {
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.write(`${JSON.stringify(request)}\n`);
    return checkedJson(schema, await firstLine(socket));
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/**
 * Asks the server on the data directory to reload a model, and waits until it has. Returns false where no
 * server listens. Throws `CommandFailed` with the reason when the old weights stay.
 */
export async function askForReload(data: string, request: Static<typeof ModelRequest>): Promise<boolean> {
  const socket = connect(join(data, FILE));
  try {
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENAMETOOLONG') return false;
    throw new CommandFailed(`The service on ${data} cannot be asked (${code}): run this as its user.`, {
      cause: error,
    });
  }
  socket.write(`${JSON.stringify(request)}\n`);
  const reply = checkedJson(Reply, await firstLine(socket).catch(() => ''));
  socket.destroy();
  if (reply === undefined) {
    throw new CommandFailed(
      `The service on ${data} ended before it had loaded ${request.id}: start it, and look at its log.`,
    );
  }
  if (reply.refusal !== null) {
    throw new CommandFailed(`${reply.refusal} The weights before stay.`);
  }
  return true;
}

/** Returns the first line. Rejects when the connection ends before, or the line is too long. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (piece: string) => {
      text += piece;
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
      else if (text.length > LINE_BYTES_MAX) reject(new Error('The line is too long.'));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('The connection has ended.')));
  });
}
