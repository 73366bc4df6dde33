import type { Caller, KeyReference } from '../accounts/key-directory.ts';
import type { ServedModelEntry } from '../catalog/catalog.ts';
import type { Identifiers } from '../contract/identifiers.ts';
import type { IdempotencyOutcome, KeyWait } from '../idempotency/queue.ts';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { Problems } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { ServedModel } from '../served-models/models.ts';
import type { Books } from '../store/books.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import type { Clock } from '../time/clock.ts';
import type { Pause } from '../time/pause.ts';

/** Finds the callers of API keys. Every method that reads rejects as the store does. */
interface Callers {
  /** Returns the caller of an active key; null for any other key. */
  authenticate(key: string | KeyReference): Promise<Caller | null>;
  /** Notes a use, which is written later. */
  touch(key_id: string, at_ms: number): void;
  /** Writes the noted uses. */
  flushLastUsed(): Promise<void>;
}

/** The models of the catalog. Every method rejects as the store does. */
interface OpenModels {
  /** Returns the open model of that id or alias that the organization may ask. */
  findLive(name: string, organization_id: string): Promise<CatalogModel | undefined>;
  /** Returns the open models that the organization may ask. */
  listLive(organization_id: string): Promise<readonly CatalogModel[]>;
  /** Returns the source of a model's answers and its price; null for a model without answers. */
  served(model: CatalogModel): Promise<ServedModelEntry | null>;
}

/** Slots, of which each name has a few at a time. */
interface Slots {
  /** Resolves with a slot, which is taken until the disposal. */
  take(name: string): Promise<Disposable>;
}

/** The parts behind the steps of a request: each an interface with what they need of it, and no class. */
export interface DecisionServices {
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  readonly keys: Callers;
  readonly catalog: OpenModels;
  readonly limiter: RateWindows;
  /** The budgets of usage rows of rejected requests; false where an organization has none left. */
  readonly rejected_rows: { take(organization_id: string, now_ms: number): boolean };
  /** The organizations' slots for being planned and admitted. */
  readonly planning: Slots;
  /** The same slots for lines of batches. */
  readonly batch_planning: Slots;
  /** The slots of planned lines for the rate windows, one at a time of an organization. */
  readonly batch_admission: Slots;
  /** Pauses lines of batches that wait. */
  readonly pause: Pause;
  /** The memory for bodies of requests that wait to be planned; null where there is no room. */
  readonly unplanned_bodies: { reserve(organization_id: string, bytes: number): Disposable | null };
  readonly books: Books;
  /** Notes a request that the spend limit of a project or key has refused, with its largest cost. */
  readonly limit_refusals: { note(subject_id: string, amount_micros: number): void };
  /** The queue of requests with an idempotency key. */
  readonly idempotency: { enter(claim: IdempotencyClaim, wait: KeyWait): Promise<IdempotencyOutcome> };
  /** The models, each with its own engine and queue. */
  readonly models: { for(model: ServedModelEntry): ServedModel };
  /** Counts the requests that a stop aborts. */
  readonly cut_requests: { add(endpoint: string, mode: Mode): void };
  /**
   * The longest wait of a request for its first scheduled plan at the model, and the longest time from there to its
   * answer. Null follows the request's tokens and the measured speed.
   */
  readonly model_time: { readonly waiting_ms: number; readonly evaluation_ms: number | null };
}
