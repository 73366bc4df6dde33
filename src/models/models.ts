import { isDeepStrictEqual } from 'node:util';
import {
  type DecisionInput,
  type DecisionPlan,
  type DecisionPlanner,
  WeightsError,
} from '../../native/engine.ts';
import type { DecisionModelEntry, ServedModelEntry, UpstreamModelEntry } from '../catalog/catalog.ts';
import type { UpstreamPool } from '../catalog/catalog-records.ts';
import { CLIENT_TIMEOUT_MS } from '../client-timeout.ts';
import type { Clock } from '../clock.ts';
import { inTime } from '../in-time.ts';
import { ModelTurns, type TurnsLoad } from '../limits/model-turns.ts';
import type { Problems } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import { type LifecycleStatus, type LoadFailure, ModelLifecycle, ModelUnavailable } from './lifecycle.ts';
import {
  type AnsweringModel,
  engineLife,
  type ModelLife,
  type ObservedUpstream,
  type UpstreamLife,
} from './model-life.ts';

/** The largest weights take minutes to be read, checked and loaded; what takes longer hangs. */
const OPENING_MS = 15 * 60_000;
/** A stop waits no longer for loads, engines and vocabularies to end, all together. */
const CLOSING_MS = 10_000;

export interface ModelsOptions {
  /** Reads the vocabulary of a model's weights. */
  readonly openPlanner: (model: DecisionModelEntry) => Promise<DecisionPlanner>;
  /** The upstreams that answer for a model in the place of an engine; opens nothing yet, and never throws. */
  readonly openUpstreams: (model: UpstreamModelEntry) => UpstreamLife;
  /** Requests that may be at one model, waiting or running. */
  readonly queue_limit: number;
  /** Without work for this long an engine is closed; 0 keeps it. */
  readonly idle_unload_ms: number;
  /** How long the end waits for loads, engines and vocabularies, all together; ten seconds by default. */
  readonly closing_ms?: number;
  readonly clock: Pick<Clock, 'monotonic_ms'>;
  /** Takes what fails in the background, with the model's id. */
  readonly problems: Pick<Problems, 'report'>;
}

/** A model that is loaded anew. */
export interface Reload {
  /** What to load; its checksum is not required but renewed. */
  readonly model: DecisionModelEntry;
  /** Stores its row as it was loaded. */
  readonly write: (loaded: DecisionModelEntry) => Promise<unknown>;
}

/** Where one model stands. */
export interface ModelState extends LifecycleStatus {
  readonly id: string;
}

/** What can be seen of one model from outside. */
export interface ObservedLife {
  readonly id: string;
  readonly status: () => LifecycleStatus;
  /** Undefined while no engine is loaded, or where none counts. */
  readonly counts: ModelLife['counts'];
  /** The members of its pool; none for an engine. */
  readonly upstreams: () => readonly ObservedUpstream[];
  /** Loads it. Rejects with `ModelUnavailable`. */
  readonly load: () => Promise<unknown>;
}

/** One model as its catalog row described it, with an engine or upstreams, and a queue of its own. */
interface Life {
  model: ServedModelEntry;
  /** The row before a reload, which a request may have read just before; null for none. */
  before: ServedModelEntry | null;
  readonly behind: ModelLife;
  /** The same where it is an engine's, or upstreams'. */
  readonly lifecycle?: ModelLifecycle;
  readonly upstreams?: UpstreamLife;
  readonly turns: ModelTurns;
  /** Requests that have asked for it and are not answered yet. */
  requests: number;
}

/** A life of an engine. */
interface EngineLife extends Life {
  model: DecisionModelEntry;
  readonly lifecycle: ModelLifecycle;
}

/** A model, loaded or not, for the time of one request, which ends when it is disposed of. */
export interface ServedModel extends Disposable {
  /** In which plans are given to the model. */
  readonly turns: ModelTurns;
  /** As `ModelLife.plan`: the plans of a request, and the most that it is billed for. */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** As `ModelLife.use`: runs work with the model, which is loaded first when it is cold. */
  use<Result>(
    mode: Mode,
    work: (model: AnsweringModel, signal: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result>;
}

/**
 * The lives of all models that the catalog has opened, each with its own vocabulary, engine and queue, or with
 * upstreams. A model whose row is gone, or has other weights now, is closed when the last request on it is answered.
 */
export class Models {
  readonly #options: ModelsOptions;
  /** Those that the next request meets, by the model's id. */
  readonly #lives = new Map<string, Life>();
  /** The same and those that were retired, until they are closed. */
  readonly #open = new Set<Life>();
  readonly #closing = new Set<Promise<void>>();
  /** Those whose row is being written: the first request that reads it takes them over. */
  readonly #prepared = new Map<string, Life>();
  /** The end of the last reload: two at once would need the memory of three sets of weights. */
  #reloaded: Promise<void> = Promise.resolve();
  /** Rejected when all is closed. */
  readonly #ended = Promise.withResolvers<never>();
  /** Requests that may be at one model, waiting or running. */
  #queue_limit: number;
  #idle_unload_ms: number;
  #is_closed = false;

  constructor(options: ModelsOptions) {
    this.#options = options;
    this.#queue_limit = options.queue_limit;
    this.#idle_unload_ms = options.idle_unload_ms;
    // Only reloads wait for it.
    this.#ended.promise.catch(() => {});
  }

  /** The model of a row that was just read, for one request. Opens nothing yet, and never throws. */
  for(model: ServedModelEntry): ServedModel {
    const life = this.#lifeOf(model);
    const { behind, turns } = life;
    life.requests += 1;
    let is_over = false;
    return {
      turns,
      plan: (input, signal) => behind.plan(input, signal),
      use: (mode, work, signal) => behind.use(mode, work, signal),
      [Symbol.dispose]: () => {
        if (is_over) return;
        is_over = true;
        life.requests -= 1;
        this.#closeIfRetired(life);
      },
    };
  }

  /** The engine's life of the model that has the id now; undefined where there is none, or it has upstreams. */
  lifecycle(id: string): ModelLifecycle | undefined {
    return this.#lives.get(id)?.lifecycle;
  }

  /** Where every model stands, by id. */
  states(): readonly ModelState[] {
    return [...this.#lives.values()]
      .map(({ model, behind }) => ({ id: model.id, ...behind.status() }))
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** The models that the catalog has opened, for whoever watches them. */
  observed(): readonly ObservedLife[] {
    return [...this.#lives.values()].map(({ model, behind, upstreams }) => ({
      id: model.id,
      status: () => behind.status(),
      counts: () => behind.counts(),
      upstreams: () => upstreams?.members() ?? [],
      load: () => behind.load(),
    }));
  }

  /** What is at one model, or at all models together. */
  turnsLoad(id?: string): TurnsLoad {
    const sum = { requests: 0, waiting_plans: 0, running_tokens: 0 };
    for (const { model, turns } of this.#open) {
      if (id !== undefined && model.id !== id) continue;
      const { requests, waiting_plans, running_tokens } = turns.load();
      sum.requests += requests;
      sum.waiting_plans += waiting_plans;
      sum.running_tokens += running_tokens;
    }
    return sum;
  }

  /** Takes over what the catalog has opened. New models stand cold; removed ones close after their last request. */
  follow(live: readonly ServedModelEntry[]): void {
    const ids = new Set(live.map(({ id }) => id));
    for (const life of this.#lives.values()) if (!ids.has(life.model.id)) this.#retire(life);
    for (const model of live) this.#lifeOf(model).before = null;
  }

  /** Changes how many requests may be at one model; those that are there stay. */
  setQueueLimit(limit: number): void {
    this.#queue_limit = limit;
    for (const { turns } of this.#open) turns.setLimit(limit);
  }

  /** Changes after which time without work an engine is closed; 0 keeps it. */
  setIdleUnload(idle_unload_ms: number): void {
    this.#idle_unload_ms = idle_unload_ms;
    for (const { lifecycle } of this.#open) lifecycle?.setIdleUnload(idle_unload_ms);
  }

  /**
   * Loads a model anew, planner and engine, beside the life that answers. When the new one answers in both modes and
   * its row is written, it gets the requests that come from then on. Those that have begun are finished by the life
   * before, which is closed after the last of them. Reloads run one after the other; `prepare` is called in turn. Rejects
   * with `ModelUnavailable`, which is reported, with `WeightsError`, and as what it is given; then the life before stays.
   */
  reload(prepare: () => Promise<Reload>): Promise<void> {
    const reloading = this.#reloaded.then(() => this.#reload(prepare));
    // Whoever asked gets the rejection.
    this.#reloaded = reloading.catch(() => {});
    return reloading;
  }

  /** Loads a model. Rejects with `ModelUnavailable` when it cannot be; the cause is reported, or left to the caller. */
  async load(
    model: ServedModelEntry,
    { failure }: { readonly failure: LoadFailure } = { failure: 'reported' },
  ): Promise<void> {
    await this.#lifeOf(model).behind.load(failure);
  }

  /**
   * Closes all models; what still runs on them is rejected. A load that hangs is waited for in a bounded time and is
   * reported then; what comes of it later is still closed.
   */
  async close(): Promise<void> {
    this.#is_closed = true;
    this.#ended.reject(new ModelUnavailable('The service is being stopped.'));
    for (const life of this.#open) this.#close(life);
    const ended = Promise.all(this.#closing).then(() => this.#reloaded);
    const { closing_ms = CLOSING_MS, problems } = this.#options;
    await inTime(ended, closing_ms, 'A model did not end its load or its close.').catch((error: unknown) =>
      problems.report({ request_id: null, step: 'model_close', code: null, error }),
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

  /** The row of a life that is loaded for both modes. */
  async #loaded({ lifecycle }: EngineLife, model: DecisionModelEntry): Promise<DecisionModelEntry> {
    // Without the bound of a request's wait.
    await lifecycle.ready('fast');
    const facts = await lifecycle.use('fast', async (engine) => {
      await lifecycle.consistentStarted();
      return engine.facts;
    });
    const { weights_sha256, profile, context_tokens } = model;
    // A model that was not checked, as one that follows the program, takes any weights.
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

  /** From now on requests meet this life. */
  #takeOver(life: Life): void {
    const { id } = life.model;
    const known = this.#lives.get(id);
    if (known === life) return;
    life.before = known?.model ?? null;
    this.#lives.set(id, life);
    if (known !== undefined) this.#closeIfRetired(known);
  }

  #lifeOf(model: ServedModelEntry): Life {
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

  /** A life that no request meets yet. */
  #openEngineLife(model: DecisionModelEntry): EngineLife {
    const { clock, problems, openPlanner } = this.#options;
    const lifecycle = new ModelLifecycle({
      openPlanner: () => openPlanner(life.model),
      idle_unload_ms: this.#idle_unload_ms,
      waiting_ms: CLIENT_TIMEOUT_MS,
      opening_ms: OPENING_MS,
      now_ms: () => clock.monotonic_ms(),
      onProblem: (step, error) =>
        problems.report({ request_id: null, step, code: null, model: model.id, error }),
    });
    const life: EngineLife = { ...this.#newLife(), model, lifecycle, behind: engineLife(lifecycle) };
    this.#register(life);
    return life;
  }

  #openUpstreamLife(model: UpstreamModelEntry): Life {
    const upstreams = this.#options.openUpstreams(model);
    const life = { ...this.#newLife(), model, upstreams, behind: upstreams };
    this.#register(life);
    return life;
  }

  #newLife() {
    return { before: null, turns: new ModelTurns(this.#queue_limit, this.#options.clock), requests: 0 };
  }

  #register(life: Life): void {
    this.#open.add(life);
    // A request that comes after the end is refused as those that were there.
    if (this.#is_closed) this.#close(life);
  }

  /** The next request meets another life, or none. */
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
    const closing = life.behind
      .close()
      .catch((error: unknown) =>
        this.#options.problems.report({
          request_id: null,
          step: 'model_close',
          code: null,
          model: life.model.id,
          error,
        }),
      )
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

/** Whether a request that read that row is the life's. */
function isLifeOf({ model, before }: Life, row: ServedModelEntry): boolean {
  return isSameModel(model, row) || (before !== null && isSameModel(before, row));
}

/** Whether both rows mean the same engine or upstreams; a price is the request's own. */
function isSameModel(one: ServedModelEntry, other: ServedModelEntry): boolean {
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

/** Whether both mean the same servers, asked alike; who is drained, and the calibration, change in place. */
function isSamePool(one: UpstreamPool, other: UpstreamPool): boolean {
  const inPlace = { draining: [], calibration: undefined };
  return isDeepStrictEqual({ ...one, ...inPlace }, { ...other, ...inPlace });
}
