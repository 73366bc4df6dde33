import { isDeepStrictEqual } from 'node:util';
import {
  type DecisionInput,
  type DecisionPlan,
  type DecisionPlanner,
  type EngineSpeed,
  WeightsError,
} from '../../native/engine.ts';
import type {
  DecisionModelEntry,
  ServedModelEntry,
  TunedModelEntry,
  UpstreamModelEntry,
} from '../catalog/catalog.ts';
import { inBackground, type Problems } from '../problems/problems.ts';
import { ModelScheduler, type SchedulerLoad } from '../scheduling/model-scheduler.ts';
import type { UpstreamPool } from '../store/catalog-records.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import type { Clock } from '../time/clock.ts';
import { inTime } from '../time/in-time.ts';
import type { Tuning } from '../tuning/tuning.ts';
import type { TuningEntry } from '../tuning/tuning-file.ts';
import type { AnswerCounts } from './answer-counts.ts';
import { EngineLifecycle } from './engine-lifecycle.ts';
import {
  type AnswerOptions,
  type LifecycleStatus,
  type LoadFailure,
  type ModelAnswer,
  type ModelAnswerer,
  ModelUnavailable,
  type ObservedUpstream,
  type UpstreamAnswerer,
} from './model-answerer.ts';
import { correctionOf, ModelRemoved, Tunings } from './tunings.ts';

/** The longest opening of the largest weights, which are read, checked and loaded; a longer one hangs. */
const OPENING_MS = 15 * 60_000;
/** The longest wait of a stop for loads, engines and vocabularies, all together. */
const CLOSING_MS = 10_000;

export interface ModelsOptions {
  /** Reads the vocabulary of a model's weights. */
  readonly openPlanner: (model: DecisionModelEntry) => Promise<DecisionPlanner>;
  /**
   * Returns the upstreams that answer for a model in place of an engine; opens nothing yet, and never throws.
   */
  readonly openUpstreams: (model: UpstreamModelEntry) => UpstreamAnswerer;
  /** Reads the text of a tuned model's tuning; there is none by default. */
  readonly readTuning?: (model_id: string) => Promise<string | undefined>;
  /** Counts the answers of tuned models; nothing does by default. */
  readonly answer_counts?: AnswerCounts;
  /** The most requests at one model, waiting or running. */
  readonly queue_limit: number;
  /** The idle time after which an engine is closed; 0 keeps it. */
  readonly idle_unload_ms: number;
  /**
   * The longest wait of the close for loads, engines and vocabularies, all together; ten seconds by default.
   */
  readonly closing_ms?: number;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** Reports failures in the background, with the model's id. */
  readonly problems: Pick<Problems, 'report'>;
}

/** A reload of a model. */
export interface Reload {
  /** The model to load; its checksum is renewed instead of required. */
  readonly model: DecisionModelEntry;
  /** Stores its row as loaded. */
  readonly write: (loaded: DecisionModelEntry) => Promise<unknown>;
}

/** The state of one model. */
export interface ModelState extends LifecycleStatus {
  readonly id: string;
}

/** The observable state of one model. */
export interface ObservedLife {
  readonly id: string;
  readonly status: () => LifecycleStatus;
  /** The measured speed; undefined while it is not known, and for upstreams. */
  readonly speed: () => EngineSpeed | undefined;
  /** Undefined while no engine is loaded, or where it has no counters. */
  readonly counts: ModelAnswerer['counts'];
  /** Returns the members of its pool; none for an engine. */
  readonly upstreams: () => readonly ObservedUpstream[];
  /** Loads it. Rejects with `ModelUnavailable`. */
  readonly load: () => Promise<unknown>;
}

/** A model that answers with weights or upstreams; a tuned one has it as its base. */
type BaseModelEntry = DecisionModelEntry | UpstreamModelEntry;

/** One model with its catalog row, an engine or upstreams, and a queue of its own. */
interface Life {
  model: BaseModelEntry;
  /** The row before a reload, which a request may have read just before it; null for none. */
  before: BaseModelEntry | null;
  readonly answerer: ModelAnswerer;
  /** The same object, where it is an engine's or upstreams'. */
  readonly lifecycle?: EngineLifecycle;
  readonly upstreams?: UpstreamAnswerer;
  readonly scheduler: ModelScheduler;
  /** The number of its unanswered requests. */
  requests: number;
}

/** A life of an engine. */
interface EngineLife extends Life {
  model: DecisionModelEntry;
  readonly lifecycle: EngineLifecycle;
}

/** A model, loaded or not, for the duration of one request, which ends with its disposal. */
export interface ServedModel extends Disposable {
  /** The queue in which plans are given to the model. */
  readonly scheduler: ModelScheduler;
  /** Waits for the vocabulary as `ModelAnswerer.readyToPlan`. */
  readyToPlan: ModelAnswerer['readyToPlan'];
  /** Plans a request as `ModelAnswerer.plan`, with the most tokens that it can be billed. */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** Returns the measured speed; undefined while it is not known, and for upstreams. */
  speed(): EngineSpeed | undefined;
  /** Answers a plan as `ModelAnswerer.answer`. */
  answer: ModelAnswerer['answer'];
}

/**
 * All open models of the catalog, each with its own vocabulary, engine and queue, or with upstreams. A model
 * whose row is removed, or has other weights, is closed after its last request.
 */
export class Models {
  readonly #options: ModelsOptions;
  readonly #tunings: Tunings;
  /** The models for new requests, by id. */
  readonly #lives = new Map<string, Life>();
  /** The same and the retired ones, until they are closed. */
  readonly #open = new Set<Life>();
  readonly #closing = new Set<Promise<void>>();
  /** The models whose row is being written: the first request that reads the row puts them into service. */
  readonly #prepared = new Map<string, Life>();
  /** The end of the last reload: two at once would need the memory of three sets of weights. */
  #reloaded: Promise<void> = Promise.resolve();
  /** Rejected when all models are closed. */
  readonly #ended = Promise.withResolvers<never>();
  /** The most requests at one model, waiting or running. */
  #queue_limit: number;
  #idle_unload_ms: number;
  #is_closed = false;

  constructor(options: ModelsOptions) {
    this.#options = options;
    this.#tunings = new Tunings(options.readTuning ?? (() => Promise.resolve(undefined)));
    this.#queue_limit = options.queue_limit;
    this.#idle_unload_ms = options.idle_unload_ms;
    // Only reloads wait for it.
    this.#ended.promise.catch(() => {});
  }

  /** Returns the model of a row that was just read, for one request. Opens nothing yet, and never throws. */
  for(model: ServedModelEntry): ServedModel {
    const life = this.#lifeOf(baseOf(model));
    const { answerer, scheduler } = life;
    life.requests += 1;
    // From here on the request has its corrections, even if the model is removed while it waits.
    const tuned = isTuned(model) ? { model, tuning: this.#tunings.of(model) } : null;
    // Nothing is lost: the answer waits for it.
    tuned?.tuning.catch(() => {});
    let is_over = false;
    return {
      scheduler,
      readyToPlan: (signal) => answerer.readyToPlan(signal),
      plan: (input, signal) => answerer.plan(input, signal),
      speed: () => answerer.speed?.(),
      answer: (plan, options) =>
        tuned === null ? answerer.answer(plan, options) : this.#answerTuned(answerer, tuned, plan, options),
      [Symbol.dispose]: () => {
        if (is_over) return;
        is_over = true;
        life.requests -= 1;
        this.#closeIfRetired(life);
      },
    };
  }

  /**
   * Returns the engine's lifecycle of the model with that id; undefined where there is none, or it has
   * upstreams.
   */
  lifecycle(id: string): EngineLifecycle | undefined {
    return this.#lives.get(id)?.lifecycle;
  }

  /** Returns the corrections of a tuned model, by its row. Rejects with `ModelRemoved`, and when they cannot be read. */
  async tuningEntries(model: Pick<TunedModelEntry, 'id' | 'tuning_sha256'>): Promise<readonly TuningEntry[]> {
    return (await this.#tunings.of(model)).entries;
  }

  /** Returns the state of every model, by id. */
  states(): readonly ModelState[] {
    return [...this.#lives.values()]
      .map(({ model, answerer }) => ({ id: model.id, ...answerer.status() }))
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** Returns the open models of the catalog, for monitoring. */
  observed(): readonly ObservedLife[] {
    return [...this.#lives.values()].map(({ model, answerer, upstreams }) => ({
      id: model.id,
      status: () => answerer.status(),
      speed: () => answerer.speed?.(),
      counts: () => answerer.counts(),
      upstreams: () => upstreams?.members() ?? [],
      load: () => answerer.load(),
    }));
  }

  /** Returns the load of one model, or of all models together. */
  schedulerLoad(id?: string): SchedulerLoad {
    const sum = { requests: 0, waiting_plans: 0, running_tokens: 0 };
    for (const { model, scheduler } of this.#open) {
      if (id !== undefined && model.id !== id) continue;
      const { requests, waiting_plans, running_tokens } = scheduler.load();
      sum.requests += requests;
      sum.waiting_plans += waiting_plans;
      sum.running_tokens += running_tokens;
    }
    return sum;
  }

  /** Applies the catalog's open models. New ones are cold; removed ones close after their last request. */
  follow(live: readonly ServedModelEntry[]): void {
    const ids = new Set(live.map(({ id }) => id));
    for (const life of this.#lives.values()) if (!ids.has(life.model.id)) this.#retire(life);
    for (const model of live) if (!isTuned(model)) this.#lifeOf(model).before = null;
    this.#tunings.keepOnly(ids);
  }

  /** Changes the most requests at one model; those already there stay. */
  setQueueLimit(limit: number): void {
    this.#queue_limit = limit;
    for (const { scheduler } of this.#open) scheduler.setLimit(limit);
  }

  /** Changes the idle time after which an engine is closed; 0 keeps it. */
  setIdleUnload(idle_unload_ms: number): void {
    this.#idle_unload_ms = idle_unload_ms;
    for (const { lifecycle } of this.#open) lifecycle?.setIdleUnload(idle_unload_ms);
  }

  /**
   * Loads a model anew, planner and engine, beside the present one. When the new one is ready in both modes
   * and its row is written, it gets all new requests. The old one finishes its requests and is then closed.
   * Reloads run one after the other; `prepare` is called in order. Rejects with `ModelUnavailable`, which is
   * reported, with `WeightsError`, and as its arguments do; then the old one stays.
   */
  reload(prepare: () => Promise<Reload>): Promise<void> {
    const reloading = this.#reloaded.then(() => this.#reload(prepare));
    // The caller gets the rejection.
    this.#reloaded = reloading.catch(() => {});
    return reloading;
  }

  /** Loads a model. Rejects with `ModelUnavailable`; the cause is reported, or left to the caller. */
  async load(
    model: ServedModelEntry,
    { failure }: { readonly failure: LoadFailure } = { failure: 'reported' },
  ): Promise<void> {
    await this.#lifeOf(baseOf(model)).answerer.load(failure);
  }

  /**
   * Closes all models and rejects their running work. The wait for a load that hangs is bounded, and it is
   * reported then; an engine that it still opens is closed.
   */
  async close(): Promise<void> {
    this.#is_closed = true;
    this.#ended.reject(new ModelUnavailable('The service is being stopped.'));
    for (const life of this.#open) this.#close(life);
    const ended = Promise.all(this.#closing).then(() => this.#reloaded);
    const { closing_ms = CLOSING_MS, problems } = this.#options;
    await inTime(ended, closing_ms, 'A model did not end its load or its close.').catch((error: unknown) =>
      problems.report(inBackground('model_close', error)),
    );
  }

  async #reload(prepare: () => Promise<Reload>): Promise<void> {
    if (this.#is_closed) return await this.#ended.promise;
    const { model, write } = await prepare();
    const life = this.#openEngineLife({ ...model, weights_sha256: null });
    try {
      life.model = await Promise.race([this.#loaded(life, model), this.#ended.promise]);
      this.#prepared.set(model.id, life);
      await write(life.model);
      this.#takeOver(life);
    } catch (error) {
      if (this.#lives.get(model.id) !== life) this.#close(life);
      throw error;
    } finally {
      this.#prepared.delete(model.id);
    }
  }

  /** Returns the row of an engine that is loaded for both modes. */
  async #loaded({ lifecycle }: EngineLife, model: DecisionModelEntry): Promise<DecisionModelEntry> {
    // Reloads have no limit on the wait.
    await lifecycle.ready('fast');
    const facts = await lifecycle.use('fast', async (engine) => {
      await lifecycle.consistentStarted();
      return engine.facts;
    });
    const { weights_sha256, profile, context_tokens } = model;
    // A model without a checksum, which follows the program, accepts any weights.
    if (weights_sha256 !== null && facts.context_tokens < context_tokens) {
      throw new WeightsError(
        `The new weights read at most ${facts.context_tokens} tokens, and ${model.id} promises ${context_tokens}: give other weights.`,
      );
    }
    return {
      ...model,
      weights_sha256: weights_sha256 === null ? null : facts.weights_sha256,
      profile: profile === null ? null : facts.profile,
    };
  }

  /** Gives all new requests to this model. */
  #takeOver(life: Life): void {
    const { id } = life.model;
    const known = this.#lives.get(id);
    if (known === life) return;
    life.before = known?.model ?? null;
    this.#lives.set(id, life);
    if (known !== undefined) this.#closeIfRetired(known);
  }

  /** Answers by a tuned model's base, whose answers are corrected, and counts those. */
  async #answerTuned(
    base: ModelAnswerer,
    { model, tuning: reading }: { readonly model: TunedModelEntry; readonly tuning: Promise<Tuning> },
    plan: DecisionPlan,
    options: AnswerOptions,
  ): Promise<ModelAnswer> {
    const tuning = await reading.catch((error: unknown) => {
      if (error instanceof ModelRemoved) throw error;
      throw new ModelUnavailable('The tuning cannot be read.', { cause: error });
    });
    const { answer_counts } = this.#options;
    const correction = correctionOf(tuning, plan, (question, answer_class) =>
      answer_counts?.note(model, tuning.entries, question, answer_class),
    );
    return await base.answer(plan, { ...options, correction });
  }

  #lifeOf(model: BaseModelEntry): Life {
    const known = this.#lives.get(model.id);
    if (known !== undefined && isLifeOf(known, model)) {
      if ('upstreams' in model) {
        known.upstreams?.setDraining(model.upstreams.draining);
        known.upstreams?.setCalibration(model.upstreams.calibration);
      }
      return known;
    }
    const prepared = this.#prepared.get(model.id);
    if (prepared !== undefined && isSameModel(prepared.model, model)) {
      this.#takeOver(prepared);
      return prepared;
    }
    if (known !== undefined) this.#retire(known);
    const life = 'upstreams' in model ? this.#openUpstreamLife(model) : this.#openEngineLife(model);
    this.#lives.set(model.id, life);
    return life;
  }

  /** Opens an engine that gets no requests yet. */
  #openEngineLife(model: DecisionModelEntry): EngineLife {
    const { clock, problems, openPlanner } = this.#options;
    const lifecycle = new EngineLifecycle({
      openPlanner: () => openPlanner(life.model),
      idle_unload_ms: this.#idle_unload_ms,
      waiting_ms: CLIENT_TIMEOUT_MS,
      opening_ms: OPENING_MS,
      now_ms: () => clock.monotonic_ms(),
      onProblem: (step, error) => problems.report(inBackground(step, error, model.id)),
    });
    const life: EngineLife = { ...this.#newLife(), model, lifecycle, answerer: lifecycle };
    this.#register(life);
    return life;
  }

  #openUpstreamLife(model: UpstreamModelEntry): Life {
    const upstreams = this.#options.openUpstreams(model);
    const life = { ...this.#newLife(), model, upstreams, answerer: upstreams };
    this.#register(life);
    return life;
  }

  #newLife() {
    return {
      before: null,
      scheduler: new ModelScheduler(this.#queue_limit, this.#options.clock),
      requests: 0,
    };
  }

  #register(life: Life): void {
    this.#open.add(life);
    // A request after the close is refused as the earlier ones were.
    if (this.#is_closed) this.#close(life);
  }

  /** Removes a model, so that new requests get another one, or none. */
  #retire(life: Life): void {
    this.#lives.delete(life.model.id);
    this.#closeIfRetired(life);
  }

  #closeIfRetired(life: Life): void {
    const is_retired = this.#lives.get(life.model.id) !== life;
    if (is_retired && life.requests === 0) this.#close(life);
  }

  #close(life: Life): void {
    if (!this.#open.delete(life)) return;
    const closing = life.answerer
      .close()
      .catch((error: unknown) =>
        this.#options.problems.report(inBackground('model_close', error, life.model.id)),
      )
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

export function isTuned(model: ServedModelEntry): model is TunedModelEntry {
  return 'base' in model;
}

/** Returns the model whose weights or upstreams answer. */
function baseOf(model: ServedModelEntry): BaseModelEntry {
  return isTuned(model) ? model.base : model;
}

/** Returns true if this model serves a request that read that row. */
function isLifeOf({ model, before }: Life, row: BaseModelEntry): boolean {
  return isSameModel(model, row) || (before !== null && isSameModel(before, row));
}

/** Returns true if both rows mean the same engine or upstreams; each request has its own price. */
function isSameModel(one: BaseModelEntry, other: BaseModelEntry): boolean {
  if ('upstreams' in one || 'upstreams' in other) {
    return (
      'upstreams' in one &&
      'upstreams' in other &&
      one.context_tokens === other.context_tokens &&
      isSamePool(one.upstreams, other.upstreams)
    );
  }
  return (
    one.weights === other.weights &&
    one.weights_sha256 === other.weights_sha256 &&
    one.profile === other.profile &&
    one.context_tokens === other.context_tokens
  );
}

/**
 * Returns true if both pools have the same servers and settings; draining and calibration change in place.
 */
function isSamePool(one: UpstreamPool, other: UpstreamPool): boolean {
  const inPlace = { draining: [], calibration: undefined };
  return isDeepStrictEqual({ ...one, ...inPlace }, { ...other, ...inPlace });
}
