import { type CallToolResult, Server } from '@modelcontextprotocol/server';
import type { TSchema } from '@sinclair/typebox';
import { version } from '../../package.json' with { type: 'json' };
import { isJsonSchema, type JsonSchema, withEnum, withoutKeyPattern } from '../questions/json-schema.ts';
import { TOOLS } from './tools.ts';

/**
 * Calls a tool of any name with the client's arguments; a refusal is a result with `isError`. The signal is aborted when
 * the client cancels the call.
 */
export type CallTool = (name: string, sent: unknown, signal: AbortSignal) => Promise<CallToolResult>;

const INSTRUCTIONS =
  'Asks typed questions with fixed options about a record, and gets probabilities. Use decide for classification, routing, checks and ratings of texts and records.';

/** Returns a server of the Model Context Protocol with every tool, for one connection or one HTTP request. */
export function toolServer(call: CallTool): Server {
  const server = new Server(
    { name: 'tds', title: 'Typed Decision Service', version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () => ({
    tools: Object.entries(TOOLS).map(([name, { title, description, arguments: schema }]) => ({
      name,
      title,
      description,
      inputSchema: { ...plain(schema), type: 'object' as const },
      annotations: { title, readOnlyHint: true, openWorldHint: false },
    })),
  }));
  server.setRequestHandler('tools/call', ({ params }, { mcpReq: { signal } }) =>
    call(params.name, params.arguments ?? {}, signal),
  );
  return server;
}

/**
 * Returns the schema as plain JSON Schema, without TypeBox's symbols, and in the words that every model's interface
 * takes: Gemini's refuses `const` and `patternProperties`.
 */
function plain(schema: TSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_, part: unknown) =>
    isJsonSchema(part) ? withoutConst(withEnum(withoutKeyPattern(part))) : part,
  );
}

/** Returns a literal as an `enum`, and any other schema as it is. */
function withoutConst({ const: literal, ...others }: JsonSchema): JsonSchema {
  return literal === undefined ? others : { ...others, enum: [literal] };
}
