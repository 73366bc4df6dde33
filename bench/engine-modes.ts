/**
 * What a way of asking costs beyond its tokens: 32 questions about a record of 2,000 tokens, with the record read once
 * (fast) ÷ read anew for each question (markers-v1's own consistent mode), against the ratio of their tokens (aim: 1.3
 * times that at most). And the price of `deterministic`, on five questions about 300 tokens and on those 32.
 *
 *   bun bench/engine-modes.ts [rounds, default 3]
 */
import {
  type AddonEvaluator,
  createAddonEvaluator,
  createAddonTokenizer,
} from '../native/evaluators/addon/index.ts';
import { markersV1 } from '../native/plan/markers-v1.ts';
import { type Plan, planTokens } from '../native/plan/plan.ts';
import type { DecisionInput } from '../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../native/weights.ts';
import type { Mode } from '../src/questions/question.ts';
import { fiveQuestions, inTurns, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 3);
const QUESTIONS = 32;
const RECORD_TOKENS = 2000;

const options = {
  model_path: EMBEDDED_WEIGHTS,
  context_tokens: 16_384,
  gpu: false,
  threads: THREADS,
  prefix_cache_bytes: 0,
} as const;
const evaluator = await createAddonEvaluator(options);
const deterministic = await createAddonEvaluator({ ...options, deterministic: true });
const tokenizer = await createAddonTokenizer({ model_path: EMBEDDED_WEIGHTS, gpu: false });

function manyQuestions(mode: Mode): DecisionInput {
  const five = fiveQuestions(mode);
  return {
    state: 'The parcel is late and nobody calls. '.repeat(RECORD_TOKENS / 8),
    questions: Array.from({ length: QUESTIONS }, (_, index) => five.questions[index % 5]).filter(
      (question) => question !== undefined,
    ),
    mode,
  };
}

const plansOf = async (input: DecisionInput) =>
  (await markersV1(tokenizer).plan(input, options.context_tokens)).plans;
const tokensOf = (plans: readonly Plan[]) => plans.reduce((sum, plan) => sum + planTokens(plan), 0);
const evaluate = (by: AddonEvaluator, plans: readonly Plan[]) =>
  Promise.all(plans.map((plan) => by.evaluate(plan, { scope: 'bench' })));

const once = await plansOf(manyQuestions('fast'));
const anew = await plansOf(manyQuestions('consistent'));
const many = await inTurns(rounds, {
  once: () => evaluate(evaluator, once),
  deterministic: () => evaluate(deterministic, once),
  anew: () => evaluate(evaluator, anew),
});
const token_ratio = tokensOf(once) / tokensOf(anew);
report({
  bench: 'engine-modes',
  threads: THREADS,
  rounds,
  questions: QUESTIONS,
  once_tokens: tokensOf(once),
  anew_tokens: tokensOf(anew),
  once_ms: rounded(many('once').wall_ms),
  anew_ms: rounded(many('anew').wall_ms),
  time_ratio_to_token_ratio: rounded(many('once').wall_ms / many('anew').wall_ms / token_ratio),
  by_cpu_time: rounded(many('once').cpu_ms / many('anew').cpu_ms / token_ratio),
});

const five = await plansOf(fiveQuestions());
const few = await inTurns(3 * rounds, {
  once: () => evaluate(evaluator, five),
  deterministic: () => evaluate(deterministic, five),
});
report({
  bench: 'engine-deterministic',
  threads: THREADS,
  rounds,
  five_questions: rounded(few('deterministic').wall_ms / few('once').wall_ms),
  five_questions_by_cpu_time: rounded(few('deterministic').cpu_ms / few('once').cpu_ms),
  many_questions: rounded(many('deterministic').wall_ms / many('once').wall_ms),
  many_questions_by_cpu_time: rounded(many('deterministic').cpu_ms / many('once').cpu_ms),
});
await evaluator.close();
await deterministic.close();
await tokenizer.close();
