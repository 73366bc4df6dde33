import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Refusal } from '../errors/errors.ts';
import { type WritableJson, writeJson } from '../json/write-json.ts';

/** Returns a tool's result: JSON as text, which every client shows its model. */
export function toolResult(value: WritableJson): CallToolResult {
  return { content: [{ type: 'text', text: writeJson(value) }] };
}

/** Returns a refusal as a tool's error, with the code, message and field that help a model to ask again. */
export function toolError(
  { code, message, param, retry_after_s }: Pick<Refusal, 'code' | 'message' | 'param' | 'retry_after_s'>,
  request_id: string,
): CallToolResult {
  return { ...toolResult({ error: { code, message, param, retry_after_s }, request_id }), isError: true };
}
