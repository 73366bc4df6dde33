import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Refusal } from '../errors.ts';
import { type WritableJson, writeJson } from '../json/write-json.ts';

/** A tool's result: JSON as text, which every client shows its model. */
export function toolResult(value: WritableJson): CallToolResult {
  return { content: [{ type: 'text', text: writeJson(value) }] };
}

/** A refusal as a tool's error, with what helps a model to ask again: code, message and the field at fault. */
export function toolError(
  { code, message, param, retry_after_s }: Pick<Refusal, 'code' | 'message' | 'param' | 'retry_after_s'>,
  request_id: string,
): CallToolResult {
  return { ...toolResult({ error: { code, message, param, retry_after_s }, request_id }), isError: true };
}
