/**
 * What a mode costs beyond its tokens: 32 questions about a record of 2,000 tokens, fast ÷ consistent, against the
 * ratio of their tokens (aim: 1.3 times that at most); and the price of `deterministic`, on five questions about a
 * record of 300 tokens and on those 32.
 *
 *   bun bench/engine-modes.ts [rounds, default 3]
 */
import { openEngine } from '../native/open.ts';
import type { DecisionInput } from '../native/plan/profile.ts';
import type { Mode } from '../native/plan/question.ts';
import { answer, fiveQuestions, inTurns, THREADS } from './support/engine.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 3);
const QUESTIONS = 32;
const RECORD_TOKENS = 2000;

const options = { evaluator: 'addon', gpu: false, threads: THREADS } as const;
const engine = await openEngine(options);
const deterministic = await openEngine({ ...options, deterministic: true });

function manyQuestions(mode: Mode): DecisionInput {
  const five = fiveQuestions(mode);
  return {
    state: 'The parcel is late and nobody calls. '.repeat(RECORD_TOKENS / 8),
    // No two are the same: a prefix that has been read is not read again.
    questions: Array.from({ length: QUESTIONS }, (_, index) => five.questions[index % 5])
      .filter((question) => question !== undefined)
      .map((question, index) => ({ ...question, instructions: `${question.instructions} (${index})` })),
    mode,
  };
}

const fast = manyQuestions('fast');
const consistent = manyQuestions('consistent');
const many = await inTurns(rounds, {
  fast: () => answer(engine, fast),
  deterministic: () => answer(deterministic, fast),
  consistent: () => answer(engine, consistent),
});
const fast_tokens = engine.plan(fast).input_tokens;
const consistent_tokens = engine.plan(consistent).input_tokens;
const token_ratio = fast_tokens / consistent_tokens;
report({
  bench: 'engine-modes',
  threads: THREADS,
  rounds,
  questions: QUESTIONS,
  fast_tokens,
  consistent_tokens,
  fast_ms: rounded(many('fast').wall_ms),
  consistent_ms: rounded(many('consistent').wall_ms),
  time_ratio_to_token_ratio: rounded(many('fast').wall_ms / many('consistent').wall_ms / token_ratio),
  by_cpu_time: rounded(many('fast').cpu_ms / many('consistent').cpu_ms / token_ratio),
});

const input = fiveQuestions();
const few = await inTurns(3 * rounds, {
  fast: () => answer(engine, input),
  deterministic: () => answer(deterministic, input),
});
report({
  bench: 'engine-deterministic',
  threads: THREADS,
  rounds,
  five_questions: rounded(few('deterministic').wall_ms / few('fast').wall_ms),
  five_questions_by_cpu_time: rounded(few('deterministic').cpu_ms / few('fast').cpu_ms),
  many_questions: rounded(many('deterministic').wall_ms / many('fast').wall_ms),
  many_questions_by_cpu_time: rounded(many('deterministic').cpu_ms / many('fast').cpu_ms),
});
await engine.close();
await deterministic.close();
