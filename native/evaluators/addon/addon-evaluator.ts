import { errorMessage, excerpt } from '../../../src/errors/error-message.ts';
import { DeviceUnavailable, EngineFailed, EngineOverloaded, EvaluationFailed } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';
import { type MachineMemory, machineMemory } from '../../machine-memory.ts';
import type { Plan, PlanLogits } from '../../plan/plan.ts';
import {
  type DecoderSize,
  type EvaluatorCounts,
  type PlanEvaluator,
  WAITING_PLANS_MAX,
} from '../../plan-evaluator.ts';
import { type ComputingThreads, computingThreads } from '../computing-threads.ts';
import type {
  AddonBinding,
  EvaluatorEvent,
  EvaluatorStats,
  KernelInstructions,
  LoadedFacts,
  NativeEvaluator,
  NativeEvaluatorOptions,
} from './binding.ts';
import { deviceName, loadBinding, nativeBackends } from './load-binding.ts';
import { packPlan, unpackLogits } from './pack.ts';

/** The largest number of threads that a decode of one small plan keeps busy. */
const FEW_THREADS = 8;
/** The default bytes of kept prefixes: a record of 16,000 tokens in decision-1. */
const DEFAULT_PREFIX_CACHE_BYTES = 512 * 2 ** 20;
/** The largest default share of this process's memory for kept prefixes. */
const PREFIX_CACHE_SHARE = 1 / 8;

/** Returns the default bytes of kept prefixes. */
export function defaultPrefixCacheBytes({ bytes }: MachineMemory): number {
  return Math.min(DEFAULT_PREFIX_CACHE_BYTES, Math.floor(bytes * PREFIX_CACHE_SHARE));
}

export interface AddonEvaluatorOptions {
  /** A GGUF file, or the first part of a split one. */
  readonly model_path: string;
  /** The largest number of positions of a plan. */
  readonly context_tokens: number;
  readonly gpu?: Gpu | undefined;
  /** Threads that compute; 0 or undefined chooses them before each decode, as `computingThreads` says. */
  readonly threads?: number | ComputingThreads | undefined;
  /** The largest number of waiting plans before `EngineOverloaded`. */
  readonly queue_limit?: number | undefined;
  /** The bytes of prefixes kept for reuse within their scope; 0 for none. */
  readonly prefix_cache_bytes?: number | undefined;
  /** True to fill each decode with plans; by default with many threads. */
  readonly full_decodes?: boolean | undefined;
  /** True for one plan at a time and one branch a decode: equal bits on any device, whatever else is asked. */
  readonly deterministic?: boolean | undefined;
  /** Called when the addon must be compiled first, which takes up to a minute. */
  readonly onBuild?: (() => void) | undefined;
  /**
   * The instructions of our kernels, for tests; by default the best of the CPU. `none` uses llama.cpp's kernels, as on
   * CPUs without the instructions.
   */
  readonly kernels?: KernelInstructions | undefined;
  /** Where the CPU times of the machine are read, for tests; by default from Linux. */
  readonly cpu_times?: string | undefined;
  /** A token id that makes a decode fail, for tests. Other plans in the decode must not fail. */
  readonly fault_token?: number | undefined;
  /** A token id whose logit cannot be read, for tests. Plans beside it must get theirs. */
  readonly read_fault_token?: number | undefined;
}

interface PendingPlan {
  readonly plan: Plan;
  readonly resolve: (logits: PlanLogits) => void;
  readonly reject: (reason: unknown) => void;
}

/** Calls the addon with a packed plan. Throws `EvaluationFailed` if the plan is malformed. */
function withPacked<Result>(plan: Plan, call: (packed: Int32Array) => Result): Result {
  try {
    return call(packPlan(plan));
  } catch (cause) {
    throw new EvaluationFailed(`The plan cannot be evaluated: ${errorMessage(cause)}.`, { cause });
  }
}

/** Evaluates plans in C++, on its own threads. `createAddonEvaluator` creates it. */
export class AddonEvaluator implements PlanEvaluator {
  readonly kind = 'addon';
  readonly device: string;
  readonly missing_gpu: string | undefined;
  readonly context_tokens: number;
  readonly decoder_tokens: number;
  readonly #plans = new Map<number, PendingPlan>();
  readonly #closed = Promise.withResolvers<void>();
  #next_id = 1;
  #is_closed = false;

  constructor(
    private readonly binding: AddonBinding,
    private readonly native: NativeEvaluator,
    facts: LoadedFacts,
    private readonly fewest_threads: number,
  ) {
    this.device = deviceName(facts.device);
    this.missing_gpu = facts.missing_gpu || undefined;
    this.context_tokens = facts.context_tokens;
    this.decoder_tokens = facts.decoder_tokens;
  }

  decoderOf(plan: Plan): DecoderSize {
    return withPacked(plan, (packed) => this.binding.decoderOf(this.native, packed));
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
      const submission = withPacked(plan, (packed) =>
        this.binding.submit(this.native, id, options.scope, packed),
      );
      if (submission === 'overloaded') return Promise.reject(new EngineOverloaded('The queue is full.'));
      if (submission === 'closed') return Promise.reject(new EngineFailed('The model has been closed.'));
    } catch (error) {
      return Promise.reject(error);
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

  slowdown(): number {
    return Math.max(1, this.stats().threads / this.fewest_threads);
  }

  stats(): EvaluatorStats {
    return this.binding.stats(this.native);
  }

  counts(): EvaluatorCounts {
    const { decodes, decoded_tokens, reused_tokens, kept_prefix_bytes, kv_cache_bytes, ...rest } =
      this.stats();
    return {
      decodes,
      read_tokens: decoded_tokens,
      reused_tokens,
      kept_prefix_bytes,
      kv_cache_bytes,
      batches: { by_size: [...rest.batches], tokens: rest.batched_tokens },
    };
  }

  close(): Promise<void> {
    if (!this.#is_closed) {
      this.#is_closed = true;
      this.binding.close(this.native);
    }
    return this.#closed.promise;
  }

  /** Receives an event of the C++ side. */
  receive(event: EvaluatorEvent): void {
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
          // A NaN would become an answer's probability.
          if (event.logits.every(Number.isFinite)) pending.resolve(unpackLogits(pending.plan, event.logits));
          else pending.reject(new EvaluationFailed('The model gave a NaN logit.'));
        }
        // A malformed plan is refused at its submission, so a decode has failed or the evaluator was closed.
        if (event.kind === 'failed') pending?.reject(new EngineFailed(event.error));
      }
    }
  }
}

/**
 * Loads a model into the addon, and builds a missing addon first. Throws `AddonUnavailable` if it cannot be built, and
 * `DeviceUnavailable` if the requested GPU is missing. Throws `EvaluationFailed` if the weights cannot be loaded or no
 * thread can be started.
 */
export async function createAddonEvaluator(options: AddonEvaluatorOptions): Promise<AddonEvaluator> {
  const { binding, built } = await loadBinding(options.gpu ?? 'auto', options.onBuild);
  const { threads: wanted } = options;
  const threads = typeof wanted === 'object' ? wanted : computingThreads(wanted);
  const { promise, resolve, reject } = Promise.withResolvers<AddonEvaluator>();
  let evaluator: AddonEvaluator | undefined;
  const require_gpu = built.library.gpu !== false && options.gpu !== undefined && options.gpu !== 'auto';
  const native_options: NativeEvaluatorOptions = {
    ...nativeBackends(built.library),
    model_path: options.model_path,
    require_gpu,
    fewest_threads: threads.fewest,
    most_threads: threads.most,
    cpu_times: options.cpu_times ?? '/proc/stat',
    context_tokens: options.context_tokens,
    queue_limit: options.queue_limit ?? WAITING_PLANS_MAX,
    prefix_cache_bytes: options.prefix_cache_bytes ?? defaultPrefixCacheBytes(machineMemory()),
    full_decodes: options.full_decodes ?? threads.most > FEW_THREADS,
    deterministic: options.deterministic ?? false,
    kernels: options.kernels ?? 'best',
    fault_token: options.fault_token ?? -1,
    read_fault_token: options.read_fault_token ?? -1,
  };
  const onEvent = (event: EvaluatorEvent): void => {
    evaluator?.receive(event);
    if (event.kind !== 'loaded') return;
    if (event.missing_gpu !== '' && require_gpu) {
      reject(new DeviceUnavailable(`There is no GPU to be used: ${event.missing_gpu}.`));
      return;
    }
    if (event.error !== undefined) {
      reject(
        new EvaluationFailed(`The model ${options.model_path} cannot be used: ${excerpt(event.error)}.`),
      );
      return;
    }
    evaluator = new AddonEvaluator(binding, native, event, threads.fewest);
    resolve(evaluator);
  };
  let native: NativeEvaluator;
  try {
    native = binding.open(native_options, onEvent);
  } catch (cause) {
    const reason = errorMessage(cause);
    throw new EvaluationFailed(`The model ${options.model_path} cannot be used: ${reason}`, { cause });
  }
  return promise;
}
