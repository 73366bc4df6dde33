import type { TestService } from './service.ts';

/** A key that looks like one, and that nobody has. */
export const UNKNOWN_KEY = `sk_svc_${'0'.repeat(32)}`;

/** A request that is in order and small. */
export const SMALL_REQUEST = {
  model: 'decision-1',
  state: 'I was charged twice for order 8812. Please give the second payment back.',
  questions: { refund: { type: 'noul', instructions: 'Does the customer ask for money back?' } },
};

/** One question of each type, about the record of `SMALL_REQUEST`. */
export const ALL_TYPES = {
  refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team should handle this message?',
    criteria: { billing: 'payments and invoices', technical: 'bugs and outages', sales: 'new purchases' },
  },
  urgency: {
    type: 'score',
    instructions: 'How urgent is this?',
    criteria: ['can wait', 'this week', 'today', 'now'],
  },
};

/** Posts a body with a key: text and bytes as they are, anything else as JSON. */
export function post(
  service: Pick<TestService, 'fetch'>,
  key: string,
  body: unknown,
  path = '/v1/decisions',
): Promise<Response> {
  return service.fetch(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

/** A message of the Model Context Protocol that calls a tool. */
export function toolCall(name: string, given: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } });
}

/** Calls a tool by one message over HTTP. */
export function callTool(
  service: Pick<TestService, 'fetch'>,
  key: string,
  ...[name, given]: Parameters<typeof toolCall>
): Promise<Response> {
  return service.fetch('/mcp', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: toolCall(name, given),
  });
}

/** Asks one yes/no question about the record of `SMALL_REQUEST`, or whatever else is given. */
export function ask(
  service: Pick<TestService, 'fetch'>,
  key: string,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<Response> {
  return post(service, key, { ...SMALL_REQUEST, ...changes });
}
