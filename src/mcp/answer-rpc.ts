import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { toolServer } from './tool-server.ts';

/**
 * Returns the HTTP response to one message of the Model Context Protocol, in its present revision or those
 * before 2026. It is one JSON document and never a stream, because the tools push nothing. `call` gets the
 * name of the tool.
 */
export async function answerRpc(
  request: Request,
  message: unknown,
  call: (name: string) => Promise<CallToolResult>,
): Promise<Response> {
  if (await isLegacyRequest(request, message)) {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await toolServer(call).connect(transport);
    return await transport.handleRequest(request, { parsedBody: message });
  }
  const handler = createMcpHandler(() => toolServer(call), { legacy: 'reject', maxSubscriptions: 0 });
  return await handler.fetch(request, { parsedBody: message });
}
