import type { Mode } from '../questions/question.ts';

/** The metadata of one request that reached the model; never its record, questions or answers. */
export interface UsageRow {
  readonly request_id: string;
  /** When the request was admitted. */
  readonly time_ms: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
  readonly model: string;
  readonly mode: Mode;
  readonly endpoint: string;
  /** The HTTP status that the client got. */
  readonly status: number;
  /** Questions answered: 0 for a failed request. */
  readonly questions: number;
  readonly input_tokens: number;
  /** What was charged: 0 for a failed request. */
  readonly cost_micros: number;
  readonly latency_ms: number;
}
