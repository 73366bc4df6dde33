import type { KeyDirectory } from '../accounts/key-directory.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Clock } from '../clock.ts';
import type { IdempotencyTurns } from '../idempotency/turns.ts';
import type { Identifiers } from '../identifiers.ts';
import type { Books } from '../ledger/books.ts';
import type { BodyBudget } from '../limits/body-budget.ts';
import type { QueuePerName } from '../limits/queue-per-name.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { RejectedRows } from '../limits/rejected-rows.ts';
import type { Models } from '../models/models.ts';
import type { Problems } from '../problems/problems.ts';
import type { CutRequests } from './cut-requests.ts';

/** The real parts behind the six steps. */
export interface DecisionServices {
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  readonly keys: KeyDirectory;
  readonly catalog: Catalog;
  readonly limiter: RateWindows;
  /** Of requests that are refused and cost nothing. */
  readonly refusals: RefusalBudgets;
  /** How many usage rows rejected requests leave. */
  readonly rejected_rows: RejectedRows;
  /** In which requests are planned, and admitted by the limiter. */
  readonly planning: QueuePerName;
  /** Bodies of requests that wait to be planned. */
  readonly unplanned_bodies: BodyBudget;
  readonly books: Books;
  /** Of requests with an idempotency key. */
  readonly idempotency: IdempotencyTurns;
  /** Each with its own engine and queue. */
  readonly models: Pick<Models, 'for'>;
  /** Counts what a stop takes off the model. */
  readonly cut_requests: CutRequests;
  /** How long a request may wait for its first turn at the model, and then take to be answered. */
  readonly model_time: { readonly waiting_ms: number; readonly evaluation_ms: number };
}
