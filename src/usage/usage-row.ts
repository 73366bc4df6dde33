import type { Mode } from '../questions/question.ts';

/** The metadata of one request that reached the model; never its record, questions or answers (contract: metadata only). */
export interface UsageRow {
  readonly request_id: string;
  /** When the request was admitted, in Unix milliseconds. */
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
  /** 0 for a failed request. */
  readonly cost_micros: number;
  /** Model time, the wait for the model's turn included. */
  readonly latency_ms: number;
}
