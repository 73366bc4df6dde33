import { availableParallelism, totalmem } from 'node:os';
import { AddonUnavailable } from '../../addon/build.ts';
import type { Gpu } from '../../addon/library.ts';
import type { Plan, PlanLogits } from '../../plan/plan.ts';
import {
  EngineFailed,
  EngineOverloaded,
  EvaluationFailed,
  type PlanEvaluator,
} from '../../plan-evaluator.ts';
import { DeviceUnavailable } from '../../setup-error.ts';
import type { AddonBinding, EngineEvent, NativeEngine, NativeOptions } from './binding.ts';
import { loadBinding, nativeBackends } from './load.ts';
import { packPlan, unpackLogits } from './pack.ts';

export { AddonUnavailable } from '../../addon/build.ts';
export { createAddonTokenizer } from './tokenizer.ts';

/** Plans that may wait unless configured. */
const DEFAULT_QUEUE_LIMIT = 512;
/** With more threads than these a decode of one small plan does not keep them busy. */
const FEW_THREADS = 8;
/** Bytes of prefixes that are kept for reuse unless configured: what a record of 16,000 tokens takes in decision-1. */
const DEFAULT_PREFIX_CACHE_BYTES = 512 * 2 ** 20;
/** The part of the machine's memory that they take at most unless configured. */
const PREFIX_CACHE_SHARE = 1 / 8;
/** What the C++ engine's lane of small plans takes, how it counts cells, and of how many it reads branches at once. */
const SMALL_PLAN_CELLS = 4_032;
const TILE_CELLS = 64;
const WAVE_CELLS = 1_024;
/** Tokens that keep a lane busy: two decodes where they are filled up, else one plan that runs and one behind it. */
const LANE_TOKENS = { gpu: 4_096, full_decodes: 1_024, few_threads: 512 };

export interface AddonOptions {
  /** A GGUF file, or the first part of a split one. */
  readonly model_path: string;
  /** Positions that a plan may use. */
  readonly context_tokens: number;
  readonly gpu?: Gpu | undefined;
  /** Threads that compute; 0 or undefined leaves one core for the event loop. */
  readonly threads?: number | undefined;
  /** Plans that may wait before `EngineOverloaded`. */
  readonly queue_limit?: number | undefined;
  /** Bytes of prefixes that are kept for reuse within their scope; 0 for none. */
  readonly prefix_cache_bytes?: number | undefined;
  /** Whether plans are taken into one decode until it is full; by default where there are many threads. */
  readonly full_decodes?: boolean | undefined;
  /** One plan at a time and one branch a decode: equal bits on any device, whatever else is asked. */
  readonly deterministic?: boolean | undefined;
  /** Called when the addon must be compiled first, which takes a while. */
  readonly onBuild?: (() => void) | undefined;
  /** False leaves the CPU's work to llama.cpp's kernels, as where the instructions for ours are missing. For tests. */
  readonly own_kernels?: boolean | undefined;
  /** A token id that makes a decode fail: what else is in the decode must not. For tests. */
  readonly fault_token?: number | undefined;
  /** A token id whose logit cannot be read: whose logits are read beside it must come all the same. For tests. */
  readonly read_fault_token?: number | undefined;
}

/** What an engine has done since it was opened. */
export interface AddonStats {
  readonly decodes: number;
  /** Tokens of plans that went through the model; a prefix that is reused is not among them. */
  readonly decoded_tokens: number;
  /** Tokens that only filled small batches up. */
  readonly filler_tokens: number;
  readonly reused_tokens: number;
  readonly failed_decodes: number;
  /** Of prefixes that are kept for reuse now. */
  readonly kept_prefix_bytes: number;
  readonly waiting_plans: number;
}

/** The addon on this machine, and what it computes on. */
export interface AvailableAddon {
  readonly available: true;
  readonly addon_path: string;
  readonly library_directory: string;
  /** `cpu`, `cuda`, `metal` or `vulkan`, and its maker's name. */
  readonly device: string;
  readonly device_name: string;
  /** Why a GPU that was wanted is not used. */
  readonly missing_gpu: string | undefined;
  /** Whether it computes with the addon's own kernels. */
  readonly has_own_kernels: boolean;
  /** Whether llama.cpp multiplies matrices by AMX. */
  readonly uses_amx: boolean;
}

/** Whether the addon can be used on this machine, for `tds doctor`. */
export type AddonStatus = AvailableAddon | { readonly available: false; readonly reason: string };

interface PendingPlan {
  readonly plan: Plan;
  readonly resolve: (logits: PlanLogits) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Builds and loads the addon where that is possible, and says what is missing where it is not. The first call in a
 * process loads ggml's backends; tests take them from another folder than the library's.
 */
export async function addonStatus(gpu: Gpu = 'auto', backends_directory?: string): Promise<AddonStatus> {
  try {
    const { binding, built } = await loadBinding(gpu);
    const backends = nativeBackends(built.library);
    const machine = binding.inspect({
      ...backends,
      library_directory: backends_directory ?? backends.library_directory,
    });
    return {
      available: true,
      addon_path: built.path,
      library_directory: built.library.directory,
      device: deviceName(machine.device),
      device_name: machine.description,
      missing_gpu: machine.missing_gpu || undefined,
      has_own_kernels: machine.has_own_kernels,
      uses_amx: machine.uses_amx,
    };
  } catch (error) {
    if (!(error instanceof AddonUnavailable)) throw error;
    return { available: false, reason: error.message };
  }
}

function inTiles(cells: number): number {
  return Math.ceil(cells / TILE_CELLS) * TILE_CELLS;
}

/** ggml's names of backends in ours. */
function deviceName(backend: string): string {
  const name = backend.toLowerCase();
  return name === 'mtl' ? 'metal' : name;
}

/** Plans evaluated by the C++ engine on a thread of its own. Made by `createAddonEvaluator`. */
export class AddonEvaluator implements PlanEvaluator {
  readonly kind = 'addon';
  readonly #plans = new Map<number, PendingPlan>();
  readonly #closed = Promise.withResolvers<void>();
  #next_id = 1;
  #is_closed = false;

  constructor(
    private readonly binding: AddonBinding,
    private readonly native: NativeEngine,
    readonly device: string,
    readonly missing_gpu: string | undefined,
    readonly context_tokens: number,
    readonly lane_tokens: number,
  ) {}

  /** As `Lane::fits` decides it; a plan that is as large as the bound may be taken for one of the other lane. */
  laneOf(plan: Plan): 'small' | 'large' {
    const lengths = plan.branches.map((branch) => branch.tokens.length);
    const read_at_once = Math.min(
      WAVE_CELLS,
      lengths.reduce((sum, length) => sum + length, 0),
    );
    const cells = inTiles(plan.prefix.length) + inTiles(Math.max(read_at_once, ...lengths));
    return cells <= SMALL_PLAN_CELLS ? 'small' : 'large';
  }

  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits> {
    const { promise, resolve, reject } = Promise.withResolvers<PlanLogits>();
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#is_closed) return Promise.reject(new EngineFailed('The model has been closed.'));
    const id = this.#next_id++;
    try {
      const submission = this.binding.submit(this.native, id, options.scope, packPlan(plan));
      if (submission === 'overloaded') return Promise.reject(new EngineOverloaded('The queue is full.'));
      if (submission === 'closed') return Promise.reject(new EngineFailed('The model has been closed.'));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      return Promise.reject(new EvaluationFailed(`The plan cannot be evaluated: ${reason}.`, { cause }));
    }
    const abort = () => {
      this.binding.cancel(this.native, id);
      this.#plans.delete(id);
      reject(signal?.reason);
    };
    this.#plans.set(id, { plan, resolve, reject });
    if (signal === undefined) return promise;
    signal.addEventListener('abort', abort, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  stats(): AddonStats {
    return this.binding.stats(this.native);
  }

  close(): Promise<void> {
    if (!this.#is_closed) {
      this.#is_closed = true;
      this.binding.close(this.native);
    }
    return this.#closed.promise;
  }

  /** What the engine's thread has sent. */
  receive(event: EngineEvent): void {
    switch (event.kind) {
      case 'loaded':
        return;
      case 'closed':
        this.#closed.resolve();
        return;
      default: {
        const pending = this.#plans.get(event.id);
        this.#plans.delete(event.id);
        if (event.kind === 'answered' && pending !== undefined) {
          // What is no number would become an answer's probability.
          if (event.logits.every(Number.isFinite)) pending.resolve(unpackLogits(pending.plan, event.logits));
          else pending.reject(new EvaluationFailed('The model gave a logit that is no number.'));
        }
        // A plan that cannot be read is refused before: what fails here is a decode, or the engine has been closed.
        if (event.kind === 'failed') pending?.reject(new EngineFailed(event.error));
      }
    }
  }
}

/**
 * Loads a model into the C++ engine; the addon is built first where it is not yet. Throws `AddonUnavailable` where it
 * cannot be, `DeviceUnavailable` when the GPU that is asked for is not there, and `EvaluationFailed` when the weights
 * cannot be loaded or the engine's threads cannot be started.
 */
export async function createAddonEvaluator(options: AddonOptions): Promise<AddonEvaluator> {
  const { binding, built } = await loadBinding(options.gpu ?? 'auto', options.onBuild);
  const threads = options.threads || Math.max(1, availableParallelism() - 1);
  const { promise, resolve, reject } = Promise.withResolvers<AddonEvaluator>();
  let evaluator: AddonEvaluator | undefined;
  const require_gpu = built.library.gpu !== false && options.gpu !== undefined && options.gpu !== 'auto';
  const full_decodes = options.full_decodes ?? threads > FEW_THREADS;
  const native_options: NativeOptions = {
    ...nativeBackends(built.library),
    model_path: options.model_path,
    require_gpu,
    threads,
    context_tokens: options.context_tokens,
    queue_limit: options.queue_limit ?? DEFAULT_QUEUE_LIMIT,
    prefix_cache_bytes:
      options.prefix_cache_bytes ?? Math.min(DEFAULT_PREFIX_CACHE_BYTES, totalmem() * PREFIX_CACHE_SHARE),
    full_decodes,
    deterministic: options.deterministic ?? false,
    own_kernels: options.own_kernels ?? true,
    fault_token: options.fault_token ?? -1,
    read_fault_token: options.read_fault_token ?? -1,
  };
  const onEvent = (event: EngineEvent): void => {
    evaluator?.receive(event);
    if (event.kind !== 'loaded') return;
    if (event.missing_gpu !== '' && require_gpu) {
      reject(new DeviceUnavailable(`There is no GPU to be used: ${event.missing_gpu}.`));
      return;
    }
    if (event.error !== undefined) {
      reject(new EvaluationFailed(`The model ${options.model_path} cannot be used: ${event.error}.`));
      return;
    }
    const device = deviceName(event.device);
    const few_or_full = full_decodes ? LANE_TOKENS.full_decodes : LANE_TOKENS.few_threads;
    evaluator = new AddonEvaluator(
      binding,
      native,
      device,
      event.missing_gpu || undefined,
      event.context_tokens,
      device === 'cpu' ? few_or_full : LANE_TOKENS.gpu,
    );
    resolve(evaluator);
  };
  let native: NativeEngine;
  try {
    native = binding.open(native_options, onEvent);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EvaluationFailed(`The model ${options.model_path} cannot be used: ${reason}`, { cause });
  }
  return promise;
}
