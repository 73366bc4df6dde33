import type { ScoringPlanner } from './decision-engine.ts';
import { EngineFailed } from './errors.ts';
import type { ModelTokenizer } from './model-tokenizer.ts';
import type { PlanLogits } from './plan/plan.ts';
import type { DecisionInput, DecisionPlan, PromptProfile } from './plan/profile.ts';
import type { Vocabulary } from './plan/vocabulary.ts';
import type { Weights } from './weights.ts';

/** A token that is a word. Vocabularies write its leading space as one of these characters. */
const WORD = /^[ \u0120\u2581]?([A-Za-z]+)$/;

/** The parts of a planner without an evaluator. */
export interface VocabularySetup {
  readonly weights: Weights;
  readonly context_tokens: number;
  readonly vocabulary: Vocabulary;
}

/** A model's vocabulary and prompt profile, for plans that a server evaluates. */
export class VocabularyPlanner implements ScoringPlanner {
  readonly vocabulary_sha256: string;
  readonly profile: string;
  readonly context_tokens: number;
  readonly warning: string | undefined;
  #closed = false;

  /** Owns `tokenizer`, which `prompts` uses, and closes it on close. */
  constructor(
    private readonly setup: VocabularySetup,
    private readonly tokenizer: ModelTokenizer,
    private readonly prompts: PromptProfile,
  ) {
    this.vocabulary_sha256 = setup.weights.sha256;
    this.profile = prompts.name;
    this.context_tokens = setup.context_tokens;
    this.warning = prompts.warning;
  }

  async plan(input: DecisionInput): Promise<DecisionPlan> {
    if (this.#closed) throw new EngineFailed('The model has been closed.');
    return { input, ...(await this.prompts.plan(input, this.context_tokens)) };
  }

  scores({ input, plans }: DecisionPlan, logits: readonly PlanLogits[]): readonly (readonly number[])[] {
    return this.prompts.scores(input, plans, logits);
  }

  wordOf(token: number): string | null {
    const { texts, special } = this.setup.vocabulary;
    return special.has(token) ? null : (WORD.exec(texts[token] ?? '')?.[1] ?? null);
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.tokenizer.close();
  }
}
