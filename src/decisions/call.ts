import type { DecisionPlan } from '../../native/engine.ts';
import type { Caller, KeyReference } from '../accounts/key-directory.ts';
import type { MissingKey } from '../accounts/key-format.ts';
import type { ServedModelEntry } from '../catalog/catalog.ts';
import type { TierLimits } from '../contract/tiers.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import type { RateStatus } from '../limits/rate-status.ts';
import type { TokenReservation } from '../limits/rate-windows.ts';
import type { RequestSpan } from '../observability/tracing.ts';
import type { WrittenAnswer } from '../questions/question.ts';
import type { ServedModel } from '../served-models/models.ts';
import type { Hold } from '../store/hold.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import type { ModelTime } from './model-time.ts';
import type { DecisionRefusal } from './refusal.ts';
import type { DecisionRequest } from './request.ts';
import type { WrittenDecision } from './schemas.ts';

// A request is an AskedCall first, and step by step a CheckedRequest, an AcceptedRequest, an AdmittedRequest, a
// HeldRequest and Decided. Each has what came before it, so that a step can run only after those that it needs.

/** The API key of a request. */
export interface AskedKey {
  /** The key of the headers, or a reference to one, or the reason why there is none. */
  readonly key: string | KeyReference | MissingKey;
  /** The caller of the key, null for an unknown key; undefined where it was not looked up yet. */
  readonly caller?: Caller | null | undefined;
}

/** A call with a request for decisions, as its checks and its planning need it. */
export interface AskedCall extends AskedKey {
  readonly request_id: string;
  readonly endpoint: string;
  /** The model of a body that names none; null where it must name one. */
  readonly default_model: string | null;
  readonly query_mode: string | null;
  /**
   * Reads and parses the body, within the budget of that organization, after the key's check; later calls
   * return the same. Refuses with `invalid_json`, `invalid_request`, or as `readBytes` does.
   */
  readonly readBody: (organization_id: string) => Promise<JsonValue | DecisionRefusal>;
  /** Returns the body as it was sent, once it is read; absent where `readBody` returns that. */
  readonly sent_body?: () => JsonValue | undefined;
  /** Returns the bytes of the body, once it is read. */
  readonly body_bytes: () => number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /**
   * Present for a line of a batch, which waits where load would have a single request refused. Aborted when it is to
   * wait no longer.
   */
  readonly patience: AbortSignal | null;
}

/** A call of a decision endpoint, as the pipeline needs it. */
export interface DecisionCall extends AskedCall {
  readonly endpoint: '/v1/decisions' | '/v1/systemone' | '/v1/decisions/batch';
  /** Calls with the same key get one decision, which is charged once; null where each call is a new one. */
  readonly idempotency_key: string | null;
  /** Null where the request is not traced. */
  readonly span: RequestSpan | null;
}

/** The caller of a request, with access to the API. */
export type KnownCaller = Caller & { readonly limits: TierLimits };

/** A request that passed the checks, with its model. */
export interface CheckedRequest {
  readonly model: ServedModelEntry;
  readonly request: DecisionRequest;
}

/** A checked request with its caller, and with its model, whose engine stays until the request is answered. */
export interface AcceptedRequest extends CheckedRequest {
  readonly call: DecisionCall;
  readonly caller: KnownCaller;
  /** The claim of a call with an idempotency key. */
  readonly claim: IdempotencyClaim | null;
  readonly served: ServedModel;
}

/** A request within its limits, with its plan and its entry in the token window. */
export interface AdmittedRequest extends AcceptedRequest {
  /** The plan, or the refusal of the model. */
  readonly plan: DecisionPlan | DecisionRefusal;
  readonly reservation: TokenReservation;
  readonly admitted_at_ms: number;
}

/** A request with a hold for its cost. */
export interface HeldRequest extends AdmittedRequest {
  readonly hold: Hold;
}

/** The model's answers to a request, before the charge. */
export interface Decided {
  /** One answer for each question, under the question's id. */
  readonly answers: JsonObject<WrittenAnswer>;
  /** The tokens that were read and are billed. */
  readonly input_tokens: number;
  /** As of `ModelTime`. */
  readonly latency_ms: number;
}

/** The facts of an outcome beside its result. Each step adds its own. */
export interface OutcomeFacts {
  caller: Caller | null;
  /** Null where the rate limits were not checked. */
  rate: RateStatus | null;
  /** True if the request got a hold: the contract's headers of what reached the model follow it, and the usage rows. */
  was_held: boolean;
  /** The requested model and mode, once the request is checked. */
  asked?: Pick<WrittenDecision, 'model' | 'mode'>;
  /** Present for the answer of an earlier call. */
  is_replayed?: true;
  /** The fields that nothing read, of a request that got a hold, or of a replay. */
  ignored_fields?: readonly string[];
  /** As in the plan of a request that asked the model, or of the one that is replayed. */
  record_tokens_left_out?: number | null;
  /** The request's time at the model, once it has a hold and a plan: once it asks the model. */
  model_time?: ModelTime;
}

/** Returns the facts before the request is checked. */
export function nothingKnown(caller: Caller | null): OutcomeFacts {
  return { caller, rate: null, was_held: false };
}

/** The outcome of a call. */
export type DecisionOutcome = Readonly<OutcomeFacts> & {
  readonly result: WrittenDecision | DecisionRefusal;
};
