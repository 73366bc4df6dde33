import type { LlamaModel } from 'node-llama-cpp';
import { EngineFailed } from '../../errors.ts';
import type { ModelTokenizer } from '../../model-tokenizer.ts';
import { rejectDeepRecursion, rejectSlowRuns, type TextCheck } from '../../pre-tokenizer.ts';
import { Slices } from '../../slices.ts';

/** Tokenizes by llama.cpp on the event loop, because node-llama-cpp uses no other thread. */
export class LlamaTokenizer implements ModelTokenizer {
  readonly #text_checks: readonly TextCheck[];
  #is_closed = false;

  /** Owns `model`, whose vocabulary is enough, and frees it on close. */
  constructor(private readonly model: LlamaModel) {
    const { ggml } = model.fileInfo.metadata.tokenizer;
    const pre_tokenizer = { model: ggml.model, pre: ggml.pre };
    this.#text_checks = [rejectDeepRecursion(pre_tokenizer), rejectSlowRuns(pre_tokenizer)];
  }

  /** Tokenizes in slices, between which the event loop turns. */
  async tokenize(texts: readonly string[]): Promise<readonly (readonly number[])[]> {
    return await new Slices().map(texts, (text) => this.#tokenizeOne(text));
  }

  async close(): Promise<void> {
    this.#is_closed = true;
    await this.model.dispose();
  }

  /** Throws `PlanRejected` for a text that llama.cpp's tokenizer cannot process on this thread. */
  #tokenizeOne(text: string): readonly number[] {
    if (this.#is_closed) throw new EngineFailed('The model has been closed.');
    for (const check of this.#text_checks) check(text);
    return this.model.tokenize(text, false);
  }
}
