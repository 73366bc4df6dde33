import type { DecisionEngine, DecisionInput, DecisionPlan } from '../../native/engine.ts';
import type { KeyDirectory } from '../accounts/key-directory.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Clock } from '../clock.ts';
import type { Identifiers } from '../identifiers.ts';
import type { Books } from '../ledger/books.ts';
import type { BodyBudget } from '../limits/body-budget.ts';
import type { ModelTurns } from '../limits/model-turns.ts';
import type { PerOrganizationQueue } from '../limits/per-organization-queue.ts';
import type { RateLimiter } from '../limits/rate-limiter.ts';
import type { RefusalBudgets } from '../limits/refusal-budgets.ts';
import type { Problems } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { CutRequests } from './cut-requests.ts';

/** The model behind the catalog's entry, loaded or not. */
export interface DecisionModel {
  /**
   * The plans of a request, and exactly what it is billed for, whether the model is loaded or not. Rejects with
   * `PlanRejected` when the model will not read it, and with `ModelUnavailable`.
   */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Runs `work` with an engine that is ready for the mode, loading it first when it is cold. Rejects with
   * `ModelWarmingUp` when consistent mode is not ready yet, with `ModelUnavailable` when the model cannot be loaded,
   * with what `work` rejects with, and at once when the signal says that time is up. When others' work has broken its
   * engine, `work` is given up through its signal, and is called again with the next one.
   */
  use<T>(
    mode: Mode,
    work: (engine: DecisionEngine, signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>;
}

/** The real parts behind the six steps. */
export interface DecisionServices {
  readonly clock: Clock;
  readonly identifiers: Identifiers;
  readonly problems: Problems;
  readonly keys: KeyDirectory;
  readonly catalog: Catalog;
  readonly limiter: RateLimiter;
  /** Of requests that are refused and cost nothing. */
  readonly refusals: RefusalBudgets;
  /** In which requests are planned, and admitted by the limiter. */
  readonly planning: PerOrganizationQueue;
  /** Bodies of requests that wait to be planned. */
  readonly unplanned_bodies: BodyBudget;
  readonly books: Books;
  readonly model: DecisionModel;
  /** In which plans are given to the model. */
  readonly turns: ModelTurns;
  /** Counts what a stop takes off the model. */
  readonly cut_requests: CutRequests;
  /** How long a request may wait for its first turn at the model, and then take to be answered. */
  readonly model_time: { readonly waiting_ms: number; readonly evaluation_ms: number };
}
