import type { Mode } from '../questions/question.ts';

/**
 * The metadata of one request that got a hold; never its record, questions or answers (contract: metadata only).
 */
export interface UsageRow {
  readonly request_id: string;
  /** The time of admission, in Unix milliseconds. */
  readonly time_ms: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
  readonly model: string;
  readonly mode: Mode;
  readonly endpoint: string;
  /** The HTTP status of the response. */
  readonly status: number;
  /** The number of answered questions: 0 for a failed request. */
  readonly questions: number;
  readonly input_tokens: number;
  /** The cost: 0 for a failed request. */
  readonly cost_micros: number;
  /** The time of the model, without the wait for it (contract: `latency_ms`). */
  readonly latency_ms: number;
}
