import type { KeyDirectory } from '../accounts/key-directory.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Clock } from '../clock.ts';
import type { IdempotencyQueue } from '../idempotency/queue.ts';
import type { Identifiers } from '../identifiers.ts';
import type { Books } from '../ledger/books.ts';
import type { BodyBudget } from '../limits/body-budget.ts';
import type { Pause } from '../limits/pause.ts';
import type { QueuePerName } from '../limits/queue-per-name.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { RejectedRows } from '../limits/rejected-rows.ts';
import type { Models } from '../models/models.ts';
import type { Problems } from '../problems/problems.ts';
import type { CutRequests } from './cut-requests.ts';

/** The parts behind the six steps. */
export interface DecisionServices {
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  readonly keys: KeyDirectory;
  readonly catalog: Catalog;
  readonly limiter: RateWindows;
  /** The budgets of refused requests, which cost nothing. */
  readonly refusals: RefusalBudgets;
  /** The budgets of usage rows of rejected requests. */
  readonly rejected_rows: RejectedRows;
  /** The queue in which requests are planned and admitted. */
  readonly planning: QueuePerName;
  /** The same queue for lines of batches. */
  readonly batch_planning: QueuePerName;
  /** The queue of planned lines for the rate windows, one at a time of an organization. */
  readonly batch_admission: QueuePerName;
  /** Pauses lines of batches that wait. */
  readonly pause: Pause;
  /** The memory for bodies of requests that wait to be planned. */
  readonly unplanned_bodies: BodyBudget;
  readonly books: Books;
  /** The queue of requests with an idempotency key. */
  readonly idempotency: IdempotencyQueue;
  /** The models, each with its own engine and queue. */
  readonly models: Pick<Models, 'for'>;
  /** Counts the requests that a stop aborts. */
  readonly cut_requests: CutRequests;
  /**
   * The longest wait of a request for its first scheduled plan at the model, and the longest time from there to its
   * answer.
   */
  readonly model_time: { readonly waiting_ms: number; readonly evaluation_ms: number };
}
