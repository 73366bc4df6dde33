import type { ControlledEvaluateInputItem, LlamaContext, LlamaContextSequence, Token } from 'node-llama-cpp';
import { EngineFailed, EvaluationFailed } from '../../errors.ts';
import { type Branch, type Plan, type PlanLogits, planPositions } from '../../plan/plan.ts';
import type { EvaluatorCounts, PlanEvaluator } from '../../plan-evaluator.ts';
import { SerialQueue } from '../serial-queue.ts';

/** Returns true for a possible token id. llama.cpp refuses those beyond its vocabulary. */
function isToken(value: number): value is Token {
  return Number.isInteger(value) && value >= 0;
}

function asTokens(values: readonly number[]): Token[] {
  return values.map((value) => {
    if (!isToken(value)) throw new EvaluationFailed(`${value} is not a token id.`);
    return value;
  });
}

/** Returns node-llama-cpp's input for a branch: every token, with the wanted logits after it. */
function branchInput(branch: Branch): ControlledEvaluateInputItem[] {
  const wanted = new Map<number, Token[]>();
  for (const read of branch.reads) {
    wanted.set(read.index, [...(wanted.get(read.index) ?? []), ...asTokens(read.tokens)]);
  }
  return asTokens(branch.tokens).map((token, index) => {
    const tokens = wanted.get(index);
    return tokens === undefined ? token : [token, { generateNext: { logits: { filter: { tokens } } } }];
  });
}

function equalTokens(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((token, index) => token === right[index]);
}

/** One plan is computed at a time. Another may wait behind a small one, so that no time is lost between them. */
const DECODER_TOKENS = 512;

/** The prefix in memory, and the scope that may reuse it. */
interface HeldPrefix {
  readonly scope: string;
  readonly tokens: readonly number[];
}

/**
 * Evaluates one plan at a time on one sequence of one context. It evaluates the prefix, then each branch after it, and
 * erases the branch. So every branch meets the same state, and its logits have the same bits.
 */
export class LlamaEvaluator implements PlanEvaluator {
  readonly kind = 'llama';
  readonly decoder_tokens = DECODER_TOKENS;
  readonly #queue: SerialQueue;
  #sequence: LlamaContextSequence;
  #held: HeldPrefix | undefined;
  #decodes = 0;
  #read_tokens = 0;
  #reused_tokens = 0;

  /** Owns `context`, which must have one sequence, and frees it on close. */
  constructor(
    private readonly context: LlamaContext,
    readonly context_tokens: number,
    readonly device: string,
    queue_limit: number,
  ) {
    this.#queue = new SerialQueue(queue_limit);
    this.#sequence = context.getSequence();
  }

  /**
   * Reads a token before any plan, and returns true if the context keeps it. Encoders and diffusion models keep nothing:
   * their branches would not see the prefix.
   */
  async keepsWhatItReads(): Promise<boolean> {
    await this.#sequence.evaluateWithoutGeneratingNewTokens(asTokens([0]));
    return this.#sequence.stateCellsStartIndex >= 0;
  }

  /** Returns the only decoder, in which every plan waits for the one before. */
  decoderOf(): 'small' {
    return 'small';
  }

  counts(): EvaluatorCounts {
    return {
      decodes: this.#decodes,
      read_tokens: this.#read_tokens,
      reused_tokens: this.#reused_tokens,
      // The held prefix is in the context itself.
      kept_prefix_bytes: 0,
    };
  }

  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits> {
    if (planPositions(plan) > this.context_tokens) {
      return Promise.reject(
        new EvaluationFailed(
          `The plan needs ${planPositions(plan)} positions of ${this.context_tokens} that there are.`,
        ),
      );
    }
    return this.#queue.run(() => this.#evaluate(plan, options.scope), options.signal);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    const { model } = this.context;
    await this.context.dispose();
    await model.dispose();
  }

  async #evaluate(plan: Plan, scope: string): Promise<PlanLogits> {
    try {
      await this.#readPrefix(plan.prefix, scope);
      const logits: PlanLogits[number][] = [];
      for (const branch of plan.branches) {
        if (this.#queue.closed) throw new EngineFailed('The model has been closed.');
        logits.push(await this.#readBranch(plan.prefix.length, branch));
      }
      return logits;
    } catch (error) {
      await this.#startOver();
      if (error instanceof EvaluationFailed) throw error;
      throw new EngineFailed('The model could not evaluate the plan.', { cause: error });
    }
  }

  /** Reuses only a whole prefix. The rest of a partial one would be read in other batches, with other last bits. */
  async #readPrefix(prefix: readonly number[], scope: string): Promise<void> {
    if (this.#held?.scope === scope && equalTokens(this.#held.tokens, prefix)) {
      this.#reused_tokens += prefix.length;
      return;
    }
    this.#held = undefined;
    await this.#sequence.clearHistory();
    await this.#sequence.evaluateWithoutGeneratingNewTokens(asTokens(prefix));
    this.#decodes += 1;
    this.#read_tokens += prefix.length;
    this.#held = { scope, tokens: prefix };
  }

  async #readBranch(start: number, branch: Branch): Promise<PlanLogits[number]> {
    const output = await this.#sequence.controlledEvaluate(branchInput(branch));
    this.#decodes += 1;
    this.#read_tokens += branch.tokens.length;
    await this.#sequence.eraseContextTokenRanges([{ start, end: start + branch.tokens.length }]);
    return branch.reads.map((read) =>
      asTokens(read.tokens).map((token) => {
        const logit = output[read.index]?.next.logits?.get(token);
        if (logit === undefined || !Number.isFinite(logit)) {
          throw new EvaluationFailed(`The model gave no logit for token ${token}.`);
        }
        return logit;
      }),
    );
  }

  /** Starts a new, empty sequence, because the cache is out of step with the old one after a failed decode. */
  async #startOver(): Promise<void> {
    this.#held = undefined;
    await this.#sequence.dispose();
    this.#sequence = this.context.getSequence();
  }
}
