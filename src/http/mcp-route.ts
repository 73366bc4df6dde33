import type { CallToolResult } from '@modelcontextprotocol/server';
import { Value } from '@sinclair/typebox/value';
import type { Caller } from '../accounts/key-directory.ts';
import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import { dollarsOf } from '../contract/money.ts';
import type { AskedKey } from '../decisions/call.ts';
import { callerOf } from '../decisions/check-request.ts';
import { ignoredFields } from '../decisions/ignored-fields.ts';
import { type CommonCode, type ErrorCode, overloaded, Refusal } from '../errors/errors.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { plainJson } from '../json/plain-json.ts';
import { writeJson } from '../json/write-json.ts';
import { ARGUMENTS_LEVEL, argumentsOf, NO_ARGUMENTS, withArguments } from '../mcp/message.ts';
import { toolError, toolResult } from '../mcp/results.ts';
import { isToolName, TOOLS, USAGE_DAYS } from '../mcp/tools.ts';
import { reported } from '../problems/problems.ts';
import type { UsageBucket, UsageReader, UsageTotals } from '../store/usage-reader.ts';
import { DAY_MS } from '../time/clock.ts';
import { dayOf, startOfDay_ms } from '../time/days.ts';
import { ReadTookTooLong } from '../usage/fair-reader.ts';
import type { RequestContext } from './context.ts';
import { answerDecision, type DecisionRouteServices, jsonReading, unreadParts } from './decision-routes.ts';
import { modelsOf } from './model-routes.ts';
import { keyWithinBudget, spendRefusal, spendUnpaid } from './refusal-gate.ts';
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
 * is billed as any request is; any other message counts as a refusal of its key.
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
      const reading = jsonReading(services, request, context, ARGUMENTS_LEVEL);
      const answered = await answerMessage(services, key, { request, context, reading });
      if (answered instanceof Response) return answered;
      spendRefusal(services, context, answered.refusal, reading.body_bytes());
      return answered;
    },
  });
}

/** The request of a message. */
interface AskedMessage {
  readonly request: Request;
  readonly context: RequestContext;
  readonly reading: ReturnType<typeof jsonReading>;
}

async function answerMessage(
  services: McpServices,
  key: AskedKey,
  asked: AskedMessage,
): Promise<Response | Refused<McpRefusal['code']>> {
  const { request, context, reading } = asked;
  const caller = await callerOf(services, { ...key, request_id: context.request_id });
  if (caller instanceof Refusal) return { refusal: caller, headers: { 'www-authenticate': 'Bearer' } };
  context.caller = caller;
  const body = await reading.readBody(caller.organization_id);
  if (body instanceof Refusal) return { refusal: body };
  const message = messageOf(body);
  if (message instanceof Refusal) return { refusal: message };
  // Loaded only here, because few services have agents as clients.
  const { answerRpc } = await import('../mcp/answer-rpc.ts');
  let is_call = false;
  const response = await answerRpc(request, message.envelope, (name) => {
    is_call = true;
    return callTool(services, name, { ...asked, sent: message.sent, caller });
  });
  if (!is_call) spendUnpaid(services, caller, { refusals: 1, body_bytes: reading.body_bytes() });
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
 * Separates a message. The arguments of a tool stay in a `JsonObject`, because plain objects use a hash without a seed.
 * The rest is small, and has few names.
 */
function messageOf(body: JsonValue): Message | McpRefusal {
  if (!isJsonObject(body)) {
    return new Refusal('invalid_request', { message: 'Send one JSON-RPC message, no batch.' });
  }
  const message = withArguments(body, NO_ARGUMENTS);
  if (writeJson(message).length > ENVELOPE_CHARACTERS_MAX) {
    return new Refusal('request_too_large', {
      message: 'The message is larger than 64 kB besides the arguments of a tool.',
    });
  }
  const envelope = plainJson(message);
  if (envelope === undefined) {
    return new Refusal('invalid_request', {
      message: 'The message has too many names besides the arguments of a tool.',
    });
  }
  return { envelope, sent: argumentsOf(body) ?? NO_ARGUMENTS };
}

/** One call of a tool by an authenticated client. */
interface ToolCall extends AskedMessage {
  readonly sent: JsonValue;
  readonly caller: Caller;
}

/** Calls a tool, tells the context of a refusal, and counts what nobody pays for. */
async function callTool(services: McpServices, name: string, call: ToolCall): Promise<CallToolResult> {
  const { caller, context, reading } = call;
  const result = await resultOf(services, name, call);
  const body_bytes = reading.body_bytes();
  if (result instanceof Refusal) {
    context.refusal = result;
    spendRefusal(services, context, result, body_bytes);
    return toolError(inWordsOfTools(result), context.request_id);
  }
  if (name !== 'decide') spendUnpaid(services, caller, { refusals: 1, body_bytes });
  return result;
}

/** Returns a refusal in the words of the tools, whose record is the contract's state. */
function inWordsOfTools({ code, message, param, retry_after_s }: Refusal) {
  return {
    code,
    message: code === 'missing_state' ? 'Send "record": a text, an object or an array.' : message,
    param: param === 'state' ? 'record' : param,
    retry_after_s,
  };
}

async function resultOf(
  services: McpServices,
  name: string,
  call: ToolCall,
): Promise<CallToolResult | Refusal> {
  if (!isToolName(name)) {
    const names = Object.keys(TOOLS).join(', ');
    return new Refusal('not_found', { message: `There is no such tool. There are: ${names}.` });
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

const DECIDE_ARGUMENTS = Object.keys(TOOLS.decide.arguments.properties);

async function decideTool(
  services: McpServices,
  { sent, caller, request, context, reading }: ToolCall,
): Promise<CallToolResult | Refusal> {
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
    reading: { ...reading, readBody: () => Promise.resolve(body) },
  } as const;
  const { outcome } = await answerDecision(services, asked, request, context);
  const { result } = outcome;
  if (result instanceof Refusal) return result;
  const ignored_fields = ignoredFields(given, DECIDE_ARGUMENTS);
  return toolResult({ ...result, ...unreadParts({ ...outcome, ignored_fields }) });
}

async function modelsTool(
  { catalog, problems }: McpServices,
  { caller, context: { request_id } }: ToolCall,
): Promise<CallToolResult | Refusal> {
  try {
    return toolResult({ models: modelsOf(await catalog.listLive(caller.organization_id)) });
  } catch (error) {
    const code = 'catalog_unavailable';
    return reported(problems, { request_id, step: 'catalog', code, error });
  }
}

async function usageTool(
  { reader, clock, problems }: McpServices,
  { sent, caller, context: { request_id } }: ToolCall,
): Promise<CallToolResult | Refusal> {
  const days = (isJsonObject(sent) ? sent.get('days') : undefined) ?? USAGE_DAYS.default;
  if (typeof days !== 'number' || !Value.Check(TOOLS.usage.arguments, { days })) {
    const message = `"days" must be a whole number from 1 to ${USAGE_DAYS.maximum}.`;
    return new Refusal('invalid_request', { message, param: 'days' });
  }
  const { organization_id, project_id } = caller;
  const now_ms = clock.now_ms();
  const from_ms = startOfDay_ms(dayOf(now_ms)) - (days - 1) * DAY_MS;
  const span = { from_ms, to_ms: now_ms + 1, offset_minutes: 0 };
  try {
    const { buckets, totals } = await reader.series({ organization_id, project_id, ...span });
    return toolResult({ days, ...summaryOf(totals), over_time: byDay(buckets) });
  } catch (error) {
    if (error instanceof ReadTookTooLong) return overloaded('long_read');
    const code = 'internal_error';
    return reported(problems, { request_id, step: 'http', code, error });
  }
}

type Summed = Pick<UsageTotals, 'requests' | 'questions' | 'input_tokens' | 'cost_micros'>;

/** Returns the sums of each UTC day with requests, whatever the width of the buckets is: a day at most. */
function byDay(buckets: readonly UsageBucket[]) {
  const used = buckets.filter(({ requests }) => requests > 0);
  return [...Map.groupBy(used, ({ start_ms }) => dayOf(start_ms))].map(([day, parts]) => {
    const sumOf = (of: keyof Summed) => parts.reduce((sum, part) => sum + part[of], 0);
    const summed = {
      requests: sumOf('requests'),
      questions: sumOf('questions'),
      input_tokens: sumOf('input_tokens'),
      cost_micros: sumOf('cost_micros'),
    };
    return { from: new Date(day).toISOString(), ...summaryOf(summed) };
  });
}

function summaryOf({ requests, questions, input_tokens, cost_micros }: Summed) {
  return { requests, questions, input_tokens, cost_usd: dollarsOf(cost_micros) };
}
