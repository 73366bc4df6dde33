import type { DecisionInput, DecisionPlan, PlanTurn } from '../../native/engine.ts';
import type { ModelAnswer } from '../models/model-life.ts';
import type { Answered, AskedMember, PoolCall, Trial } from './pool.ts';
import type { ServerFacts } from './server-facts.ts';

/** Which weights have answered, as far as that can be seen. */
export interface Source {
  /** Null where the member's list of models could not be read. */
  readonly facts: ServerFacts | null;
  /** As `TokenAnswer.fingerprint`. */
  readonly of_answer: string;
}

/** The answer of a model, not calibrated, with all that had a part in it. */
export interface SourcedAnswer extends ModelAnswer {
  readonly sources: readonly Source[];
}

/** How the calls of one request reach the pool. */
export interface Caller {
  /** The organization. */
  readonly scope: string;
  /** As `Pool.ask`. */
  ask<Answer>(call: PoolCall<Answer>, preferred?: AskedMember): Promise<Answered<Answer>>;
  /** Does the work when its turn has come, of which only the tokens are its own. */
  inTurn<Result>(tokens: PlanTurn['tokens'], work: () => Promise<Result>): Promise<Result>;
}

/** What is asked of upstreams for a request: the side of a protocol that knows decisions. */
export interface Asking {
  /** What the scores depend on beside the weights: the prompt profile, or the protocol where the server has its own. */
  readonly profile: string;
  /** The worst case of what a request is billed for. As `ModelLife.plan`. */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** Asks everything, at once as far as it can be. Rejects with what the first call that failed rejects with. */
  answer(plan: DecisionPlan, caller: Caller): Promise<SourcedAnswer>;
  /** A small question about nobody's record. Rejects where none can be made. */
  trial(): Promise<Trial>;
  close(): Promise<void>;
}
