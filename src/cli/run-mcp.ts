import { Readable } from 'node:stream';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { SERVICE_URL, type Values } from '../config/settings.ts';
import { ErrorResponseSchema } from '../http/schemas.ts';
import { isJsonObject, type JsonValue, jsonValueOf } from '../json/json-value.ts';
import { JsonError, readJson } from '../json/read-json.ts';
import { textLines } from '../json/text-lines.ts';
import { writeJson } from '../json/write-json.ts';
import { ARGUMENTS_LEVEL, argumentsOf, withArguments } from '../mcp/message.ts';
import { toolServer } from '../mcp/tool-server.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import { CommandFailed } from './command-failed.ts';
import { jsonOrNull } from './json-body.ts';

/** The options of `tds mcp`. */
export type McpOptions = Values<'url' | 'key'>;

/** The service's response to a call of a tool. */
const RpcResponse = Type.Object({
  result: Type.Object({
    content: Type.Array(Type.Object({ type: Type.Literal('text'), text: Type.String() })),
    isError: Type.Optional(Type.Boolean()),
  }),
});

/** Serves one agent until its standard input ends. Throws `CommandFailed` without a key. */
export async function runMcp({ url = SERVICE_URL, key }: McpOptions): Promise<void> {
  if (key === undefined) throw new CommandFailed('An API key is needed: set TDS_API_KEY.');
  const endpoint = URL.parse('/mcp', url);
  if (endpoint === null)
    throw new CommandFailed(`${url} is no address: name one such as http://127.0.0.1:8080.`);
  const ended = new Promise((resolve) => process.stdin.once('close', resolve));
  const transport = new StdioServerTransport(Readable.from(sealedLines(process.stdin)));
  const served = serveStdio(
    () => toolServer((name, sent, signal) => callService({ endpoint, key, signal }, name, sent)),
    { transport },
  );
  await ended;
  await served.close();
}

/** Arguments of a tool as one text, because the protocol's library would round numbers in them and move names. */
const SealedArguments = Type.Object({ text: Type.String() });

/** Yields the agent's messages, with the arguments of tools sealed. */
async function* sealedLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const line of textLines(input)) yield Buffer.from(`${sealed(line)}\n`);
}

function sealed(line: string): string {
  try {
    const message = readJson(line, { keeps_outer_numbers: true, outer_level: ARGUMENTS_LEVEL });
    const sent = isJsonObject(message) ? argumentsOf(message) : undefined;
    if (!isJsonObject(message) || sent === undefined) return line;
    return writeJson(withArguments(message, jsonValueOf({ text: writeJson(sent) })));
  } catch (error) {
    // The library refuses what is no JSON, and the service what is nested too deeply.
    if (error instanceof JsonError) return line;
    throw error;
  }
}

function unsealed(sent: unknown): JsonValue {
  return Value.Check(SealedArguments, sent)
    ? readJson(sent.text, { keeps_outer_numbers: true })
    : jsonValueOf(sent);
}

/** A call of the agent, on its way to the service. */
interface CallOnItsWay {
  readonly endpoint: URL;
  readonly key: string;
  /** Aborted when the agent cancels the call. */
  readonly signal: AbortSignal;
}

/**
 * Passes a call on to the service. A failure on the way becomes a tool's error, so that the agent can read
 * it.
 */
async function callService(
  { endpoint, key, signal }: CallOnItsWay,
  name: string,
  sent: unknown,
): Promise<CallToolResult> {
  let response: Response;
  try {
    response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: writeJson({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: unsealed(sent) },
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(CLIENT_TIMEOUT_MS)]),
      // The record is sent only to this address, through the environment's proxy for it, and never to a
      // redirect.
      redirect: 'manual',
    });
  } catch {
    // The message is for the person who configured the address; the agent needs no more detail.
    return failed(
      `No service answers at ${endpoint.origin}: start one with "tds serve", or name it by --url.`,
    );
  }
  const document = await jsonOrNull(response);
  if (Value.Check(ErrorResponseSchema, document)) {
    const { code, message } = document.error;
    return failed(`${code}: ${message} [${document.request_id}]`);
  }
  return Value.Check(RpcResponse, document)
    ? document.result
    : failed(`What answers at ${endpoint.origin} is not this service (HTTP ${response.status}).`);
}

function failed(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}
