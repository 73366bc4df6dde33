import type { DecisionEngine } from './engine.ts';
import { EvaluationFailed } from './evaluator.ts';
import type { DecisionInput } from './plan/profile.ts';
import type { Mode } from './plan/question.ts';

/** Calls back after a delay, unless the function that it returns is called before. */
export type Schedule = (callback: () => void, delay_ms: number) => () => void;

/** Where the model stands: not loaded, loading, answering fast requests, or answering both modes. */
export type LifecycleState = 'cold' | 'loading' | 'fast_ready' | 'ready';

export interface LifecycleStatus {
  readonly state: LifecycleState;
  /** Why the last attempt to load failed, or undefined. */
  readonly load_error: string | undefined;
}

/** Consistent mode is still starting (spec, 503 `model_warming_up`). */
export class ModelWarmingUp extends Error {
  override readonly name = 'ModelWarmingUp';
  constructor(readonly retry_after_s: number) {
    super('The model is warming up for consistent mode.');
  }
}

/** The model could not be loaded (spec, 502 `model_unavailable`). */
export class ModelUnavailable extends Error {
  override readonly name = 'ModelUnavailable';
}

export interface LifecycleOptions {
  readonly open: () => Promise<DecisionEngine>;
  /** Without work for this long the model is unloaded; 0, the default, keeps it. */
  readonly idle_unload_ms?: number;
  readonly schedule?: Schedule;
  /** What a consistent request that comes too early is told to wait. */
  readonly retry_after_s?: number;
}

/** A loaded engine, and who is using it. */
interface Loaded {
  readonly engine: DecisionEngine;
  consistent_ready: boolean;
  users: number;
  /** Set when no new work may start on it; resolves once it is closed. */
  retired: PromiseWithResolvers<void> | undefined;
}

const DEFAULT_RETRY_AFTER_S = 5;

const scheduleByTimer: Schedule = (callback, delay_ms) => {
  const timer = setTimeout(callback, delay_ms);
  timer.unref();
  return () => clearTimeout(timer);
};

function warmUpInput(mode: Mode): DecisionInput {
  const question = { type: 'noul', instructions: 'Is it on?', yes: undefined, no: undefined } as const;
  return { state: 'The light is on.', questions: [question], mode };
}

async function warmUp(engine: DecisionEngine, mode: Mode): Promise<void> {
  const input = warmUpInput(mode);
  await engine.evaluate(input, await engine.plan(input), { scope: 'warm-up' });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Resolves as `promise` does, or rejects with the signal's reason when that comes first. */
function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * The model's life (design, "Life cycle"): cold → loading → fast_ready → ready, and back to cold when nobody has asked
 * for a while or when an evaluation failed. Whoever needs a cold model loads it, once for all who wait.
 */
export class ModelLifecycle {
  readonly #open: () => Promise<DecisionEngine>;
  readonly #idle_unload_ms: number;
  readonly #schedule: Schedule;
  readonly #retry_after_s: number;
  #loading: Promise<Loaded> | undefined;
  #loaded: Loaded | undefined;
  /** The end of the engine before: the next one is not opened while it holds its memory. */
  #ended: Promise<void> = Promise.resolve();
  #load_error: string | undefined;
  #cancelIdle: (() => void) | undefined;
  #closed = false;
  readonly #reported = new WeakSet<Error>();

  constructor(options: LifecycleOptions) {
    this.#open = options.open;
    this.#idle_unload_ms = options.idle_unload_ms ?? 0;
    this.#schedule = options.schedule ?? scheduleByTimer;
    this.#retry_after_s = options.retry_after_s ?? DEFAULT_RETRY_AFTER_S;
  }

  status(): LifecycleStatus {
    return { state: this.#state(), load_error: this.#load_error };
  }

  /** The engine when one is loaded, without loading any; it may be unloaded at any later time. */
  engineIfLoaded(): DecisionEngine | undefined {
    return this.#loaded?.engine;
  }

  /**
   * The engine, loaded for this call if need be. Rejects with `ModelWarmingUp` when consistent mode is not ready (and
   * starts loading), with `ModelUnavailable` when the model cannot be loaded (the next call tries again), and with the
   * signal's reason. An engine so got may be unloaded when idle: work on it belongs in `use`.
   */
  async ready(mode: Mode, signal?: AbortSignal): Promise<DecisionEngine> {
    const loaded = await this.#ready(mode, signal);
    this.#restartIdle();
    return loaded.engine;
  }

  /**
   * What `work` resolves to with a loaded engine, which stays loaded until then. Rejects as `ready` and `work` do; an
   * `EvaluationFailed` reopens the engine for the next call.
   */
  async use<Result>(
    mode: Mode,
    work: (engine: DecisionEngine) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    let loaded = await this.#ready(mode, signal);
    // Between becoming ready and this line, another request may have reported a failure.
    while (loaded.retired !== undefined) loaded = await this.#ready(mode, signal);
    loaded.users += 1;
    this.#restartIdle();
    try {
      return await work(loaded.engine);
    } catch (error) {
      if (error instanceof EvaluationFailed) this.#fail(loaded, error);
      throw error;
    } finally {
      loaded.users -= 1;
      if (loaded.retired === undefined) this.#restartIdle();
      else if (loaded.users === 0) await this.#end(loaded, loaded.retired);
    }
  }

  /**
   * Tells that an evaluation outside of `use` failed: the engine is unloaded once its users are done, and the next call
   * loads anew. Errors other than `EvaluationFailed`, and those that `use` has seen, change nothing.
   */
  reportFailure(error: unknown): void {
    if (error instanceof EvaluationFailed && this.#loaded !== undefined) this.#fail(this.#loaded, error);
  }

  /** Unloads the model for good; what still runs on it is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelIdle?.();
    const loading = this.#loading;
    const loaded = this.#loaded;
    this.#loaded = undefined;
    await loading?.catch(() => {});
    await loaded?.engine.close();
    await this.#ended;
  }

  #state(): LifecycleState {
    if (this.#loaded !== undefined) return this.#loaded.consistent_ready ? 'ready' : 'fast_ready';
    return this.#loading === undefined ? 'cold' : 'loading';
  }

  async #ready(mode: Mode, signal: AbortSignal | undefined): Promise<Loaded> {
    if (this.#closed) throw new ModelUnavailable('The model has been closed.');
    signal?.throwIfAborted();
    const loaded = this.#loaded;
    if (loaded !== undefined) {
      if (mode === 'consistent' && !loaded.consistent_ready) throw new ModelWarmingUp(this.#retry_after_s);
      return loaded;
    }
    const failed_before = this.#load_error !== undefined;
    this.#loading ??= this.#load();
    // Who waits learns of a failed load; a load that was only set off must not become an unhandled rejection.
    this.#loading.catch(() => {});
    if (mode === 'fast') return await unlessAborted(this.#loading, signal);
    // A model that cannot be loaded is not warming up: after a failure the outcome is waited for.
    if (failed_before) await unlessAborted(this.#loading, signal);
    throw new ModelWarmingUp(this.#retry_after_s);
  }

  async #load(): Promise<Loaded> {
    let engine: DecisionEngine | undefined;
    try {
      await this.#ended;
      engine = await this.#open();
      if (this.#closed) throw new ModelUnavailable('The model has been closed.');
      await warmUp(engine, 'fast');
      if (this.#closed) throw new ModelUnavailable('The model has been closed.');
    } catch (error) {
      await engine?.close().catch(() => {});
      this.#loading = undefined;
      this.#load_error = reasonOf(error);
      throw error instanceof ModelUnavailable
        ? error
        : new ModelUnavailable('The model could not be loaded.', { cause: error });
    }
    const loaded: Loaded = { engine, consistent_ready: false, users: 0, retired: undefined };
    this.#loading = undefined;
    this.#load_error = undefined;
    this.#loaded = loaded;
    this.#restartIdle();
    void this.#startConsistent(loaded);
    return loaded;
  }

  async #startConsistent(loaded: Loaded): Promise<void> {
    try {
      await warmUp(loaded.engine, 'consistent');
    } catch (error) {
      // A queue full of fast requests is no reason to hold consistent ones back.
      if (error instanceof EvaluationFailed) return this.#fail(loaded, error);
    }
    loaded.consistent_ready = true;
  }

  #fail(loaded: Loaded, error: Error): void {
    if (this.#reported.has(error)) return;
    this.#reported.add(error);
    this.#retire(loaded);
  }

  /** Takes the engine out of service; it is closed once nobody uses it. */
  #retire(loaded: Loaded): void {
    if (loaded.retired !== undefined || this.#loaded !== loaded) return;
    const retired = Promise.withResolvers<void>();
    loaded.retired = retired;
    this.#loaded = undefined;
    this.#cancelIdle?.();
    this.#ended = retired.promise;
    if (loaded.users === 0) void this.#end(loaded, retired);
  }

  async #end(loaded: Loaded, retired: PromiseWithResolvers<void>): Promise<void> {
    // What failed may fail to close, too; the next engine is opened all the same.
    await loaded.engine.close().catch(() => {});
    retired.resolve();
  }

  #restartIdle(): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    const loaded = this.#loaded;
    if (this.#idle_unload_ms === 0 || loaded === undefined || loaded.users > 0) return;
    this.#cancelIdle = this.#schedule(() => this.#retire(loaded), this.#idle_unload_ms);
  }
}
