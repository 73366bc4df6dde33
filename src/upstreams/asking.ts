import type { DecisionInput, DecisionPlan, ScheduledPlan } from '../../native/engine.ts';
import type { ModelAnswer } from '../served-models/model-answerer.ts';
import type { Answered, AskedMember, PoolCall, Trial } from './pool.ts';
import type { ServerFacts } from './server-facts.ts';

/** The weights that gave an answer, as far as visible. */
export interface Source {
  /** Null where the member's list of models could not be read. */
  readonly facts: ServerFacts | null;
  /** As `TokenAnswer.fingerprint`. */
  readonly of_answer: string;
}

/** The uncalibrated answer of a model, with all sources of it. */
export interface SourcedAnswer extends ModelAnswer {
  readonly sources: readonly Source[];
}

/** The access of one request to the pool. */
export interface PoolAccess {
  /** The organization. */
  readonly scope: string;
  /** As `Pool.ask`. */
  ask<Answer>(call: PoolCall<Answer>, preferred?: AskedMember): Promise<Answered<Answer>>;
  /** Does the work when it is scheduled; of its plan, only the tokens matter here. */
  schedule<Result>(tokens: ScheduledPlan['tokens'], work: () => Promise<Result>): Promise<Result>;
}

/**
 * The way to ask upstreams: it plans a request, makes its calls, and combines their answers. One is for servers that
 * decide, one for servers that are sent tokens.
 */
export interface Asking {
  /** The prompt profile of the scores, or the protocol where the server has its own. */
  readonly profile: string;
  /** As `ModelAnswerer.readyToPlan`. */
  readyToPlan(signal?: AbortSignal): Promise<void>;
  /** Plans a request, with the most tokens that it can be billed. As `ModelAnswerer.plan`. */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** Makes all calls, concurrently as far as possible. Rejects as the first failed call does. */
  answer(plan: DecisionPlan, pool: PoolAccess): Promise<SourcedAnswer>;
  /** Returns a health probe, which is about no client's record. Rejects where none can be made. */
  trial(): Promise<Trial>;
  close(): Promise<void>;
}
