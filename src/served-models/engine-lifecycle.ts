import {
  type DecisionEngine,
  type DecisionInput,
  type DecisionPlan,
  type DecisionPlanner,
  EngineFailed,
  EngineOverloaded,
  type EngineSpeed,
  EvaluationFailed,
  EvaluationTimedOut,
  type EvaluatorCounts,
  PlanRejected,
  type SchedulePlan,
} from '../../native/engine.ts';
import { errorMessage } from '../errors/error-message.ts';
import type { ProblemStep } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import { QueueTimedOut } from '../scheduling/model-scheduler.ts';
import { unlessAborted } from '../time/pause.ts';
import { type Schedule, scheduleByTimer } from '../time/schedule.ts';
import { countsOfClosed, countsWithEarlier } from './engine-counts.ts';
import { sendHealthProbe } from './health-probe.ts';
import {
  type AnswerOptions,
  type LifecycleState,
  type LifecycleStatus,
  type LoadFailure,
  type ModelAnswer,
  type ModelAnswerer,
  ModelUnavailable,
  ModelWarmingUp,
  modelClosed,
} from './model-answerer.ts';

export interface LifecycleOptions {
  readonly openPlanner: () => Promise<DecisionPlanner>;
  /** The idle time after which the engine is closed; 0, the default, keeps it. The planner stays. */
  readonly idle_unload_ms?: number;
  /** The longest wait of a request for a cold model; undefined for as long as it loads. */
  readonly waiting_ms?: number;
  /**
   * The time after which opening a planner or engine, or its first answer, counts as hung; undefined for no
   * limit.
   */
  readonly opening_ms?: number;
  readonly schedule?: Schedule;
  /** Returns monotonic milliseconds. */
  readonly now_ms?: () => number;
  /** Reports failures in the background, which no caller gets, or not every affected caller. */
  readonly onProblem: (step: BackgroundStep, error: unknown) => void;
}

type BackgroundStep = ProblemStep & `model_${string}`;

/** A plan at the engine, until the engine is done with it, which may be after its request has ended. */
interface PlanUnderWay {
  /** The time by which its request is to be answered. */
  readonly ends_by_ms: number;
}

/** A loaded engine with its users. */
interface Loaded {
  readonly engine: DecisionEngine;
  /** The time at which it became ready for fast requests. */
  readonly since_ms: number;
  consistent_ready: boolean;
  /** Settles when consistent mode is ready, or never will be. */
  consistent: Promise<void>;
  /** Functions that each stop one piece of work on the engine and reject it. */
  readonly users: Set<(reason: Error) => void>;
  readonly under_way: Set<PlanUnderWay>;
  is_retired: boolean;
  is_probed: boolean;
}

type Work<Result> = (
  engine: DecisionEngine,
  signal: AbortSignal,
  under_way: Set<PlanUnderWay>,
) => Promise<Result>;

/** The estimate of loading and warming up before they have been measured. */
const UNMEASURED_MS = 5_000;
/** The tolerated lateness of a client that was told when to come back. */
const LATE_CLIENT_MS = 10_000;
/** After this time, a failed request may have waited for an engine that hangs. */
const DOUBTFUL_MS = 60_000;
/** The time after which a health probe without an answer means that the engine hangs, unless it has older plans. */
const PROBE_MS = 120_000;
/** The longest wait for an engine to close, which may hang, before the next one is opened. */
const CLOSE_MS = 30_000;
/** The time from the readiness of both modes to the measurement of the speed, which is not to delay the first requests. */
const SPEED_DELAY_MS = 5_000;
/** The most engines that one request is moved to after the work of others has broken one. */
const ENGINES_PER_REQUEST = 3;

/** This engine was retired because of another request; the next one is to answer. */
class EngineRetired extends Error {
  override readonly name = 'EngineRetired';
  constructor(cause: unknown) {
    super('The engine was taken out of service.', { cause });
  }
}

/** The engine took too long for something that should take a moment. */
class EngineStuck extends Error {
  override readonly name = 'EngineStuck';
}

/**
 * The lifecycle of a model's engine: cold → loading → fast_ready → ready, and back to cold after an idle time or a
 * failure of the engine. The first request for a cold model loads it, once for all that wait. Its planner is
 * opened at the first use and stays until the end, so that a cold model plans as a loaded one does.
 */
export class EngineLifecycle implements ModelAnswerer {
  readonly #openPlanner: () => Promise<DecisionPlanner>;
  #idle_unload_ms: number;
  readonly #waiting_ms: number | undefined;
  readonly #opening_ms: number | undefined;
  readonly #schedule: Schedule;
  readonly #now_ms: () => number;
  readonly #onProblem: LifecycleOptions['onProblem'];
  #planner: Promise<DecisionPlanner> | undefined;
  /** The same planner, once it is open. */
  #open_planner: DecisionPlanner | undefined;
  #loading: Promise<Loaded> | undefined;
  #loading_since_ms = 0;
  #loaded: Loaded | undefined;
  /** The counters of the engines that were closed, because metrics would lose them with each idle time. */
  #closed_counts: EvaluatorCounts | undefined;
  /** The end of the previous engine. The next one is opened after it, because it needs the memory. */
  #ended: Promise<void> = Promise.resolve();
  #load_error: string | undefined;
  /** Of the last engine that was measured. */
  #speed: EngineSpeed | undefined;
  /** The duration of the last load, and of the last start of consistent mode, in this process. */
  #load_ms = UNMEASURED_MS;
  #warm_up_ms = UNMEASURED_MS;
  /** The time until which a client that was told to come back is expected. */
  #expected_until_ms = 0;
  #cancelIdle: (() => void) | undefined;
  #closed = false;

  constructor(options: LifecycleOptions) {
    this.#openPlanner = options.openPlanner;
    this.#idle_unload_ms = options.idle_unload_ms ?? 0;
    this.#waiting_ms = options.waiting_ms;
    this.#opening_ms = options.opening_ms;
    this.#schedule = options.schedule ?? scheduleByTimer;
    this.#now_ms = options.now_ms ?? (() => performance.now());
    this.#onProblem = options.onProblem;
  }

  status(): LifecycleStatus {
    return { state: this.#state(), load_error: this.#load_error };
  }

  /** Changes the idle time after which the engine is closed, counted from now; 0 keeps it. */
  setIdleUnload(idle_unload_ms: number): void {
    if (idle_unload_ms === this.#idle_unload_ms) return;
    this.#idle_unload_ms = idle_unload_ms;
    this.#restartIdle();
  }

  /** Returns the speed on this machine, which is measured soon after both modes are ready; undefined before. */
  speed(): EngineSpeed | undefined {
    return this.#speed;
  }

  counts(): ReturnType<ModelAnswerer['counts']> {
    return countsWithEarlier(this.#closed_counts, this.#loaded?.engine.counts?.());
  }

  /** Returns the engine if it is loaded, without loading it; it may be unloaded at any later time. */
  engineIfLoaded(): DecisionEngine | undefined {
    return this.#loaded?.engine;
  }

  /** Opens the planner, and resolves when it is open. Rejects as `plan` does. */
  async readyToPlan(signal?: AbortSignal): Promise<void> {
    await this.#withPlanner(() => Promise.resolve(), signal);
  }

  /**
   * Returns the plans of a request, and exactly its billed tokens; loads no engine. Rejects with
   * `PlanRejected`. Rejects with `ModelUnavailable` when the planner cannot be opened (the next call tries
   * again) or fails. Rejects with `ModelWarmingUp` when opening the planner takes longer than a request
   * waits. Rejects with the signal's reason when that comes before the planner.
   */
  async plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan> {
    return await this.#withPlanner((planner) => planner.plan(input), signal);
  }

  async #withPlanner<Result>(
    work: (planner: DecisionPlanner) => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    try {
      const planner =
        this.#open_planner ?? (await unlessAborted(this.#waitFor(this.#openedPlanner()), signal));
      return await work(planner);
    } catch (error) {
      if (signal?.aborted === true && error === signal.reason) throw error;
      const is_told = error instanceof ModelUnavailable || error instanceof ModelWarmingUp;
      if (error instanceof PlanRejected || is_told) throw error;
      throw new ModelUnavailable('The request could not be planned.', { cause: error });
    }
  }

  /**
   * Returns the engine, and loads it if need be. Rejects with `ModelWarmingUp` when consistent mode is not
   * ready (and starts loading). Rejects with `ModelUnavailable` when the model cannot be loaded (the next
   * call tries again), and with the signal's reason. An idle engine may be unloaded at any time: work on it
   * belongs in `use`.
   */
  async ready(mode: Mode, signal?: AbortSignal): Promise<DecisionEngine> {
    const loaded = await this.#ready(mode, signal);
    this.#restartIdle();
    return loaded.engine;
  }

  /** Loads the engine, for fast requests first. */
  async load(failure: LoadFailure = 'reported'): Promise<void> {
    await this.#ready('fast', undefined, failure);
    this.#restartIdle();
  }

  /** Returns the plan's scores by the loaded engine, and bills the planned tokens. Rejects as `use` does. */
  answer(plan: DecisionPlan, options: AnswerOptions): Promise<ModelAnswer> {
    const { schedulePlan: schedule, evaluation_ms = () => 0 } = options;
    let ends_by_ms: number | undefined;
    const evaluate: Work<ModelAnswer> = async (engine, signal, under_way) => {
      const schedulePlan: SchedulePlan | undefined =
        schedule &&
        ((scheduled, compute, given_up) => {
          const begin = async () => {
            ends_by_ms ??= this.#now_ms() + evaluation_ms();
            const plan_under_way = { ends_by_ms };
            under_way.add(plan_under_way);
            return await compute().finally(() => under_way.delete(plan_under_way));
          };
          return schedule(scheduled, begin, given_up);
        });
      const scores = await engine.evaluate(plan, { ...options, signal, schedulePlan });
      return { scores, input_tokens: plan.input_tokens };
    };
    return this.use(plan.input.mode, evaluate, options.signal);
  }

  /** Resolves when the loaded engine is ready in both modes, or has been retired. */
  async consistentStarted(): Promise<void> {
    await this.#loaded?.consistent;
  }

  /**
   * Runs `work` with a loaded engine, which stays loaded meanwhile. Resolves as `work` does; rejects as
   * `ready` and `work` do. Rejects with `ModelWarmingUp` when loading takes longer than a request waits.
   * Rejects at once when the signal is aborted with `EvaluationTimedOut`. An `EngineFailed` retires the
   * engine; other work on it is aborted through its signal and begins again on the next engine. After an
   * `EvaluationFailed`, an `EvaluationTimedOut`, or any failure after a long time but `QueueTimedOut`, a health
   * probe is sent to the engine. The engine is retired when it does not answer.
   */
  async use<Result>(mode: Mode, work: Work<Result>, signal?: AbortSignal): Promise<Result> {
    let loaded = await this.#readyInTime(mode, signal);
    for (let engines = 1; ; engines++) {
      // Another request may have reported a failure between the engine's readiness and this line.
      while (loaded.is_retired) loaded = await this.#waitFor(this.#readyAgain(mode, signal));
      try {
        return await this.#useOnce(loaded, work, signal);
      } catch (error) {
        if (!(error instanceof EngineRetired)) throw error;
        if (engines === ENGINES_PER_REQUEST) {
          throw new ModelUnavailable('The model failed again and again.', { cause: error });
        }
      }
    }
  }

  /** Unloads the model for good and rejects running work. Waits for a load in progress, which may hang. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#open_planner = undefined;
    this.#cancelIdle?.();
    // Nothing is lost: a load reports its failure itself, and so does the caller that needed the planner.
    await this.#loading?.catch(() => {});
    if (this.#loaded !== undefined) this.#retire(this.#loaded, modelClosed());
    await this.#ended;
    await this.#planner?.then(
      (planner) => planner.close(),
      () => {},
    );
  }

  #openedPlanner(): Promise<DecisionPlanner> {
    if (this.#closed) return Promise.reject(modelClosed());
    if (this.#planner !== undefined) return this.#planner;
    const opening = this.#inTime('The vocabulary', this.#openPlanner(), (planner) => planner.close());
    this.#planner = opening;
    opening.then(
      (planner) => {
        if (!this.#closed) this.#open_planner = planner;
      },
      (error) => {
        this.#planner = undefined;
        // Nothing is lost: a load reports its failure, and all callers that have not left get the same
        // rejection.
        if (error instanceof EngineStuck && this.#loading === undefined) this.#onProblem('model_load', error);
      },
    );
    return opening;
  }

  #state(): LifecycleState {
    if (this.#loaded !== undefined) return this.#loaded.consistent_ready ? 'ready' : 'fast_ready';
    return this.#loading === undefined ? 'cold' : 'loading';
  }

  async #ready(
    mode: Mode,
    signal: AbortSignal | undefined,
    failure: LoadFailure = 'reported',
  ): Promise<Loaded> {
    if (this.#closed) throw modelClosed();
    signal?.throwIfAborted();
    const loaded = this.#loaded;
    if (loaded !== undefined) {
      if (mode === 'consistent' && !loaded.consistent_ready) throw this.#warmingUp();
      return loaded;
    }
    const failed_before = this.#load_error !== undefined;
    const loading = this.#startLoading(failure);
    if (mode === 'fast') return await unlessAborted(loading, signal);
    // A model that cannot be loaded is not warming up: after a failure, the request waits for the result of
    // the load.
    if (failed_before) await unlessAborted(loading, signal);
    throw this.#warmingUp();
  }

  /** Does as `#ready`, within the time that a request waits for a cold model. */
  #readyInTime(mode: Mode, signal: AbortSignal | undefined): Promise<Loaded> {
    const ready = this.#ready(mode, signal);
    return this.#loaded === undefined ? this.#waitFor(ready) : ready;
  }

  /**
   * Resolves as `coming` does, or rejects with `ModelWarmingUp` when that takes longer than a request waits.
   */
  async #waitFor<Result>(coming: Promise<Result>): Promise<Result> {
    if (this.#waiting_ms === undefined) return await coming;
    const late = Promise.withResolvers<never>();
    const cancel = this.#schedule(() => late.reject(this.#warmingUp()), this.#waiting_ms);
    try {
      return await Promise.race([coming, late.promise]);
    } finally {
      cancel();
    }
  }

  /**
   * Resolves as `opening` does. Rejects when that takes too long; `undo` gets a result that comes after all.
   */
  async #inTime<Opened>(
    what: string,
    opening: Promise<Opened>,
    undo: (late: Opened) => Promise<void> = () => Promise.resolve(),
  ): Promise<Opened> {
    if (this.#opening_ms === undefined) return await opening;
    const seconds = Math.round(this.#opening_ms / 1_000);
    const stuck = Promise.withResolvers<never>();
    let is_stuck = false;
    const cancel = this.#schedule(() => {
      is_stuck = true;
      stuck.reject(new EngineStuck(`${what} did not come in ${seconds} seconds.`));
      opening.then(
        (late) => undo(late).catch((error: unknown) => this.#onProblem('model_close', error)),
        // Nothing is lost: the delay has been reported already.
        () => {},
      );
    }, this.#opening_ms);
    try {
      return await Promise.race([opening, stuck.promise]);
    } finally {
      if (!is_stuck) cancel();
    }
  }

  /** Returns the next engine for a request whose engine was retired; waits for consistent mode too. */
  async #readyAgain(mode: Mode, signal: AbortSignal | undefined): Promise<Loaded> {
    const loaded = await this.#ready('fast', signal);
    if (mode === 'consistent') await unlessAborted(loaded.consistent, signal);
    return loaded;
  }

  #startLoading(failure: LoadFailure): Promise<Loaded> {
    if (this.#loading === undefined) {
      this.#loading_since_ms = this.#now_ms();
      this.#loading = this.#load(failure);
      // Nothing is lost: the load reports its failure, or its caller gets it. There may be no other waiter.
      this.#loading.catch(() => {});
    }
    return this.#loading;
  }

  /** Returns the refusal, and keeps the model until the client has had time to come back. */
  #warmingUp(): ModelWarmingUp {
    const now_ms = this.#now_ms();
    const loaded = this.#loaded;
    const load_left_ms =
      loaded === undefined ? Math.max(0, this.#load_ms - (now_ms - this.#loading_since_ms)) : 0;
    const warm_up_left_ms = this.#warm_up_ms - (loaded === undefined ? 0 : now_ms - loaded.since_ms);
    const retry_after_s = Math.max(1, Math.ceil((load_left_ms + Math.max(0, warm_up_left_ms)) / 1_000));
    this.#expected_until_ms = Math.max(
      this.#expected_until_ms,
      now_ms + retry_after_s * 1_000 + LATE_CLIENT_MS,
    );
    this.#restartIdle();
    return new ModelWarmingUp(retry_after_s);
  }

  async #load(failure: LoadFailure): Promise<Loaded> {
    let engine: DecisionEngine | undefined;
    try {
      await this.#ended;
      const planner = await this.#openedPlanner();
      engine = await this.#inTime('The engine', planner.openEngine(), (late) => late.close());
      if (this.#closed) throw modelClosed();
      await this.#inTime('The first answer', sendHealthProbe(engine, 'fast'));
      if (this.#closed) throw modelClosed();
    } catch (error) {
      if (failure === 'reported' && !this.#closed) this.#onProblem('model_load', error);
      if (engine !== undefined) await this.#end(engine);
      this.#loading = undefined;
      this.#load_error = errorMessage(error);
      throw error instanceof ModelUnavailable
        ? error
        : new ModelUnavailable('The model could not be loaded.', { cause: error });
    }
    const since_ms = this.#now_ms();
    const loaded: Loaded = {
      engine,
      since_ms,
      consistent_ready: false,
      consistent: Promise.resolve(),
      users: new Set(),
      under_way: new Set(),
      is_retired: false,
      is_probed: false,
    };
    this.#load_ms = since_ms - this.#loading_since_ms;
    this.#loading = undefined;
    this.#load_error = undefined;
    this.#loaded = loaded;
    this.#restartIdle();
    loaded.consistent = this.#startConsistent(loaded);
    return loaded;
  }

  async #startConsistent(loaded: Loaded): Promise<void> {
    try {
      await this.#inTime('The first answer in consistent mode', sendHealthProbe(loaded.engine, 'consistent'));
    } catch (error) {
      // An engine that was retired meanwhile fails for the same reason.
      if (loaded.is_retired) return;
      // Full queues of fast requests must not hold up consistent ones.
      if (!(error instanceof EngineOverloaded)) this.#onProblem('model_warm_up', error);
      const is_of_no_use = error instanceof EvaluationFailed || error instanceof EngineStuck;
      if (is_of_no_use) return this.#retire(loaded, error);
    }
    this.#warm_up_ms = this.#now_ms() - loaded.since_ms;
    loaded.consistent_ready = true;
    if (loaded.engine.measureSpeed === undefined) return;
    this.#schedule(() => void this.#measureSpeed(loaded), SPEED_DELAY_MS);
  }

  /** Measures the engine beside its requests. Never rejects: without a speed, limits are constants. */
  async #measureSpeed(loaded: Loaded): Promise<void> {
    if (loaded.is_retired) return;
    try {
      this.#speed = (await loaded.engine.measureSpeed?.()) ?? this.#speed;
    } catch (error) {
      if (!loaded.is_retired && !(error instanceof EngineOverloaded)) this.#onProblem('model_warm_up', error);
    }
  }

  async #useOnce<Result>(
    loaded: Loaded,
    work: Work<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const given_up = new AbortController();
    const lost = Promise.withResolvers<never>();
    const giveUp = (reason: Error) => {
      given_up.abort(reason);
      lost.reject(reason);
    };
    // A timeout rejects the work at once. When the client leaves, work that still completes counts and is
    // charged.
    const abort = () =>
      signal?.reason instanceof EvaluationTimedOut ? giveUp(signal.reason) : given_up.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    loaded.users.add(giveUp);
    this.#restartIdle();
    const began_ms = this.#now_ms();
    try {
      signal?.throwIfAborted();
      return await Promise.race([work(loaded.engine, given_up.signal, loaded.under_way), lost.promise]);
    } catch (error) {
      if (loaded.is_retired) throw error instanceof EngineFailed ? new EngineRetired(error) : error;
      const is_doubtful =
        error instanceof EvaluationFailed ||
        error instanceof EvaluationTimedOut ||
        (this.#now_ms() - began_ms >= DOUBTFUL_MS && !(error instanceof QueueTimedOut));
      if (error instanceof EngineFailed) this.#retire(loaded, error);
      else if (is_doubtful) this.#probe(loaded);
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
      loaded.users.delete(giveUp);
      this.#restartIdle();
    }
  }

  /** Retires the engine unless it answers a health probe in time, which may have to wait for plans under way. */
  #probe(loaded: Loaded): void {
    if (loaded.is_probed) return;
    loaded.is_probed = true;
    const now_ms = this.#now_ms();
    const busy_ms = Math.max(0, ...[...loaded.under_way].map(({ ends_by_ms }) => ends_by_ms - now_ms));
    const fail = (error: Error) => {
      if (loaded.is_retired) return;
      this.#onProblem('model_probe', error);
      this.#retire(loaded, error);
    };
    const cancel = this.#schedule(
      () => fail(new EngineStuck('The engine did not answer a small request.')),
      busy_ms + PROBE_MS,
    );
    sendHealthProbe(loaded.engine, 'fast')
      .catch((error) => {
        if (error instanceof EvaluationFailed) fail(error);
        else if (!(error instanceof EngineOverloaded)) this.#onProblem('model_probe', error);
      })
      .finally(() => {
        cancel();
        loaded.is_probed = false;
      });
  }

  /** Takes the engine out of service for that reason, and closes it. Its users go on with the next one. */
  #retire(loaded: Loaded, reason: unknown): void {
    if (loaded.is_retired) return;
    loaded.is_retired = true;
    const counts = this.counts();
    if (counts !== undefined) this.#closed_counts = countsOfClosed(counts);
    this.#loaded = undefined;
    this.#cancelIdle?.();
    this.#ended = this.#end(loaded.engine);
    for (const giveUp of loaded.users) giveUp(new EngineRetired(reason));
  }

  /** Resolves when the engine is closed, or hangs. */
  async #end(engine: DecisionEngine): Promise<void> {
    const closed = Promise.withResolvers<void>();
    const cancel = this.#schedule(() => {
      this.#onProblem('model_close', new EngineStuck('The engine did not close.'));
      closed.resolve();
    }, CLOSE_MS);
    // A failed engine may fail to close as well; the next one is opened all the same.
    engine
      .close()
      .catch((error: unknown) => this.#onProblem('model_close', error))
      .finally(closed.resolve);
    await closed.promise;
    cancel();
  }

  #restartIdle(): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    const loaded = this.#loaded;
    if (this.#idle_unload_ms === 0 || loaded === undefined || loaded.users.size > 0) return;
    const delay_ms = Math.max(this.#idle_unload_ms, this.#expected_until_ms - this.#now_ms());
    this.#cancelIdle = this.#schedule(
      () => this.#retire(loaded, new ModelUnavailable('The model was not in use.')),
      delay_ms,
    );
  }
}
