import type { CallToolResult } from '@modelcontextprotocol/server';
import { Value } from '@sinclair/typebox/value';
import type { Caller } from '../accounts/key-directory.ts';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { dollarsOf } from '../contract/money.ts';
import type { AskedKey } from '../decisions/call.ts';
import { callerOf } from '../decisions/check-request.ts';
import { type CommonCode, type ErrorCode, Refusal } from '../errors/errors.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';
import { toolError, toolResult } from '../mcp/results.ts';
import { isToolName, TOOLS, USAGE_DAYS } from '../mcp/tools.ts';
import { reported } from '../problems/problems.ts';
import type { UsageReader } from '../store/usage-reader.ts';
import { DAY_MS } from '../time/clock.ts';
import { readJsonBody } from './body.ts';
import type { RequestContext } from './context.ts';
import { answerDecision, type DecisionRouteServices, unreadParts } from './decision-routes.ts';
import { modelsOf } from './model-routes.ts';
import { keyWithinBudget, spendRefusal } from './refusal-gate.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import { defineRoute, type Refused, type Route } from './route.ts';

/** The parts that answer agents. */
type McpServices = DecisionRouteServices & { readonly reader: Pick<UsageReader, 'series'> };

const MCP_CODES = [
  'missing_api_key',
  'invalid_api_key',
  'invalid_json',
  'invalid_request',
  'request_too_large',
  'unsupported_encoding',
  'rate_limit_exceeded',
  'auth_unavailable',
] as const satisfies readonly ErrorCode[];

type McpRefusal = Refusal<(typeof MCP_CODES)[number] | CommonCode>;

/** The most characters of a message besides the arguments of a tool, as JSON text. */
const ENVELOPE_CHARACTERS_MAX = 65_536;

/**
 * Returns the route `POST /mcp`: the Model Context Protocol for agents, over streamable HTTP without
 * sessions, with the API key of the headers. Every response is one JSON document; nothing is pushed. `decide`
 * is billed as any request is.
 */
export function mcpRoute(services: McpServices): Route {
  return defineRoute({
    method: 'POST',
    path: '/mcp',
    refusals: MCP_CODES,
    operation: null,
    handle: async (request, context) => {
      const key = await keyWithinBudget(services, request, context);
      if ('refusal' in key) return key;
      const answered = await answerMessage(services, key, request, context);
      if (answered instanceof Response) return answered;
      spendRefusal(services, context, answered.refusal);
      return answered;
    },
  });
}

async function answerMessage(
  services: McpServices,
  key: AskedKey,
  request: Request,
  context: RequestContext,
): Promise<Response | Refused<McpRefusal['code']>> {
  const caller = await callerOf(services, { ...key, request_id: context.request_id });
  if (caller instanceof Refusal) return { refusal: caller, headers: { 'www-authenticate': 'Bearer' } };
  context.caller = caller;
  context.onKnown();
  const { organization_id } = caller;
  const body = await readJsonBody(request, { organization_id }, services.body_limits);
  if (body instanceof Refusal) return { refusal: body };
  const message = messageOf(body);
  if (message instanceof Refusal) return { refusal: message };
  // Loaded only here, because few services have agents as clients.
  const { answerRpc } = await import('../mcp/answer-rpc.ts');
  const response = await answerRpc(request, message.envelope, (name) =>
    callTool(services, {
      name,
      sent: message.sent,
      caller,
      request,
      context,
    }),
  );
  response.headers.set(REQUEST_ID_HEADER, context.request_id);
  return response;
}

/** A message, with the client's arguments of a tool apart from it. */
interface Message {
  /** The message without the arguments of a tool, as plain objects. */
  readonly envelope: unknown;
  readonly sent: JsonValue;
}

/**
 * Separates a message. Names chosen by the client stay in a `JsonObject`, because plain objects use a hash
 * without a seed; the rest is small.
 */
function messageOf(body: JsonValue): Message | McpRefusal {
  if (!isJsonObject(body)) {
    return new Refusal('invalid_request', { message: 'Send one JSON-RPC message, no batch.' });
  }
  const params = body.get('params');
  const sent = isJsonObject(params) ? params.get('arguments') : undefined;
  const rest =
    isJsonObject(params) && sent !== undefined
      ? body.with('params', params.with('arguments', new JsonObject<JsonValue>([], [])))
      : body;
  const text = writeJson(rest);
  if (text.length > ENVELOPE_CHARACTERS_MAX) {
    return new Refusal('request_too_large', {
      message: 'The message is larger than 64 kB besides the arguments of a tool.',
    });
  }
  return { envelope: JSON.parse(text), sent: sent ?? new JsonObject<JsonValue>([], []) };
}

/** One call of a tool by an authenticated client. */
interface ToolCall {
  readonly name: string;
  readonly sent: JsonValue;
  readonly caller: Caller;
  readonly request: Request;
  readonly context: RequestContext;
}

async function callTool(services: McpServices, call: ToolCall): Promise<CallToolResult> {
  const { name, context } = call;
  if (!isToolName(name)) {
    const names = Object.keys(TOOLS).join(', ');
    const refusal = new Refusal('not_found', { message: `There is no such tool. There are: ${names}.` });
    return toolError(refusal, context.request_id);
  }
  switch (name) {
    case 'decide':
      return await decideTool(services, call);
    case 'list_models':
      return await modelsTool(services, call);
    case 'usage':
      return await usageTool(services, call);
  }
}

async function decideTool(
  services: McpServices,
  { sent, caller, request, context }: ToolCall,
): Promise<CallToolResult> {
  const given = isJsonObject(sent) ? sent : new JsonObject<JsonValue>([], []);
  const field = (name: string) => given.get(name) ?? null;
  const body = new JsonObject<JsonValue>(
    ['model', 'state', 'questions', 'mode'],
    [given.get('model') ?? DEFAULT_MODEL, field('record'), field('questions'), field('mode')],
  );
  const asked = {
    endpoint: '/v1/decisions',
    default_model: null,
    key: { key_id: caller.key_id },
    caller,
    query_mode: null,
    openai: null,
    body,
  } as const;
  const { outcome } = await answerDecision(services, asked, request, context);
  const { result } = outcome;
  if (!(result instanceof Refusal)) return toolResult({ ...result, ...unreadParts(outcome) });
  spendRefusal(services, context, result);
  const param = result.param === 'state' ? 'record' : result.param;
  const { code, message, retry_after_s } = result;
  return toolError({ code, message, param, retry_after_s }, context.request_id);
}

async function modelsTool(
  { catalog, problems }: McpServices,
  { caller, context: { request_id } }: ToolCall,
): Promise<CallToolResult> {
  try {
    return toolResult({ models: modelsOf(await catalog.listLive(caller.organization_id)) });
  } catch (error) {
    const code = 'catalog_unavailable';
    return toolError(reported(problems, { request_id, step: 'catalog', code, error }), request_id);
  }
}

async function usageTool(
  { reader, clock, problems }: McpServices,
  { sent, caller, context: { request_id } }: ToolCall,
): Promise<CallToolResult> {
  const days = (isJsonObject(sent) ? sent.get('days') : undefined) ?? USAGE_DAYS.default;
  if (typeof days !== 'number' || !Value.Check(TOOLS.usage.arguments, { days })) {
    const message = `"days" must be a whole number from 1 to ${USAGE_DAYS.maximum}.`;
    return toolError(new Refusal('invalid_request', { message, param: 'days' }), request_id);
  }
  const { organization_id, project_id } = caller;
  const to_ms = clock.now_ms() + 1;
  const span = { from_ms: to_ms - days * DAY_MS, to_ms, offset_minutes: 0 };
  try {
    const { buckets, totals } = await reader.series({ organization_id, project_id, ...span });
    return toolResult({
      days,
      ...summaryOf(totals),
      over_time: buckets
        .filter(({ requests }) => requests > 0)
        .map((bucket) => ({ from: new Date(bucket.start_ms).toISOString(), ...summaryOf(bucket) })),
    });
  } catch (error) {
    const code = 'internal_error';
    return toolError(reported(problems, { request_id, step: 'http', code, error }), request_id);
  }
}

type Summed = Pick<
  Awaited<ReturnType<UsageReader['series']>>['totals'],
  'requests' | 'questions' | 'input_tokens' | 'cost_micros'
>;

function summaryOf({ requests, questions, input_tokens, cost_micros }: Summed) {
  return { requests, questions, input_tokens, cost_usd: dollarsOf(cost_micros) };
}
