/**
 * Measures the cost of a mode beyond its tokens. The time of 32 questions about a record of 2,000 tokens in one request
 * ÷ that of the same questions in separate requests. The ratio is compared with that of their tokens (target: at most
 * 1.3 times that). Also measures the cost of `deterministic`, on five questions about 300 tokens and on those 32.
 *
 *   bun bench/engine-modes.ts [rounds, default 3]
 */
import { type DecisionEngine, type DecisionInput, type DecisionPlan, openEngine } from '../native/engine.ts';
import { alternating, fiveQuestions, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 3);
const QUESTIONS = 32;
const RECORD_TOKENS = 2000;

const options = { evaluator: 'addon', gpu: false, threads: THREADS } as const;
const engine = await openEngine(options);
const deterministic = await openEngine({ ...options, deterministic: true });

const small = fiveQuestions();
const many_questions: DecisionInput = {
  ...small,
  state: 'The parcel is late and nobody calls. '.repeat(RECORD_TOKENS / 8),
  questions: Array.from({ length: QUESTIONS }, (_, index) => small.questions[index % 5]).filter(
    (question) => question !== undefined,
  ),
};

let scopes = 0;
/** Every plan has its own scope, without a kept prefix. */
const evaluate = (by: DecisionEngine, plans: readonly DecisionPlan[]) =>
  Promise.all(plans.map((plan) => by.evaluate(plan, { scope: `bench ${scopes++}` })));
const tokensOf = (plans: readonly DecisionPlan[]) =>
  plans.reduce((sum, { input_tokens }) => sum + input_tokens, 0);

const once = [await engine.plan(many_questions)];
const anew = await Promise.all(
  many_questions.questions.map((question) => engine.plan({ ...many_questions, questions: [question] })),
);
const many = await alternating(rounds, {
  once: () => evaluate(engine, once),
  deterministic: () => evaluate(deterministic, once),
  anew: () => evaluate(engine, anew),
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

const five = [await engine.plan(small)];
const few = await alternating(3 * rounds, {
  once: () => evaluate(engine, five),
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
await engine.close();
await deterministic.close();
