import { errorMessage, excerpt } from '../../../src/errors/error-message.ts';
import { EngineFailed, EvaluationFailed } from '../../errors.ts';
import type { Gpu } from '../../gpu.ts';
import type { ModelTokenizer } from '../../model-tokenizer.ts';
import { type PreTokenizer, rejectSlowRuns, type TextCheck } from '../../pre-tokenizer.ts';
import type { AddonBinding, NativeTokenizer, TokenizerEvent } from './binding.ts';
import { loadBinding, nativeBackends } from './load-binding.ts';
import { unpackTokens } from './pack.ts';

export interface AddonTokenizerOptions {
  /** A GGUF file, or the first part of a split one. */
  readonly model_path: string;
  /** The same GPU as the evaluators', because a process loads ggml's backends once. */
  readonly gpu?: Gpu | undefined;
  /** Called when the addon must be compiled first, which takes a while. */
  readonly onBuild?: (() => void) | undefined;
}

/** Tokenizes on its own C++ threads. `createAddonTokenizer` creates it. */
class AddonTokenizer implements ModelTokenizer {
  readonly #batches = new Map<number, PromiseWithResolvers<readonly (readonly number[])[]>>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #text_check: TextCheck;
  #next_id = 1;
  #is_closed = false;

  constructor(
    private readonly binding: AddonBinding,
    private readonly native: NativeTokenizer,
    pre_tokenizer: PreTokenizer,
  ) {
    this.#text_check = rejectSlowRuns(pre_tokenizer);
  }

  async tokenize(texts: readonly string[]): Promise<readonly (readonly number[])[]> {
    if (this.#is_closed) throw new EngineFailed('The model has been closed.');
    texts.forEach(this.#text_check);
    const id = this.#next_id++;
    const batch = Promise.withResolvers<readonly (readonly number[])[]>();
    this.binding.tokenizeAll(this.native, id, texts);
    this.#batches.set(id, batch);
    return await batch.promise;
  }

  close(): Promise<void> {
    if (!this.#is_closed) {
      this.#is_closed = true;
      this.binding.close(this.native);
    }
    return this.#closed.promise;
  }

  /** Receives an event of the tokenizer's threads. */
  receive(event: TokenizerEvent): void {
    if (event.kind === 'closed') this.#closed.resolve();
    if (event.kind !== 'tokenized') return;
    const batch = this.#batches.get(event.id);
    this.#batches.delete(event.id);
    if (event.error === undefined) batch?.resolve(unpackTokens(event.tokens, event.lengths));
    else batch?.reject(new (this.#is_closed ? EngineFailed : EvaluationFailed)(event.error));
  }
}

/**
 * Loads a model's vocabulary into the addon, and builds a missing addon first. Throws `AddonUnavailable` if it cannot
 * be built. Throws `EvaluationFailed` if the vocabulary cannot be loaded or no thread can be started.
 */
export async function createAddonTokenizer(options: AddonTokenizerOptions): Promise<ModelTokenizer> {
  const { model_path } = options;
  const { binding, built } = await loadBinding(options.gpu ?? 'auto', options.onBuild);
  const { promise, resolve, reject } = Promise.withResolvers<ModelTokenizer>();
  const unusable = (reason: string, cause?: unknown) =>
    new EvaluationFailed(`The vocabulary of ${model_path} cannot be used: ${reason}`, { cause });
  let tokenizer: AddonTokenizer | undefined;
  const onEvent = (event: TokenizerEvent): void => {
    tokenizer?.receive(event);
    if (event.kind !== 'loaded') return;
    if (event.error !== undefined) {
      reject(unusable(`${excerpt(event.error)}.`));
      return;
    }
    tokenizer = new AddonTokenizer(binding, native, {
      model: event.tokenizer_model,
      pre: event.pre_tokenizer,
    });
    resolve(tokenizer);
  };
  let native: NativeTokenizer;
  try {
    native = binding.openTokenizer({ ...nativeBackends(built.library), model_path }, onEvent);
  } catch (cause) {
    throw unusable(errorMessage(cause), cause);
  }
  return promise;
}
