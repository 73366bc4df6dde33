/**
 * Measures the time of planning a request, which is mostly tokenizing: through the addon ÷ through llama.cpp's
 * tokenizer. It plans the five questions, and the largest kind of request (64 questions, nearly a megabyte of text).
 *
 *   bun bench/tokenizer.ts [rounds, default 9]
 */
import { type DecisionInput, openPlanner } from '../native/engine.ts';
import { alternating, fiveQuestions } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 9);

/** Returns questions that share no text, together as long as the largest body. */
function largest(): DecisionInput {
  const text = FIVE_QUESTIONS.state.repeat(10);
  const questions = Array.from({ length: 64 }, (_, index) => ({
    type: 'noul' as const,
    instructions: `${index} ${text}`,
    yes: undefined,
    no: undefined,
  }));
  return { state: text, questions, mode: 'fast' };
}

const options = { gpu: false } as const;
const addon = await openPlanner({ ...options, evaluator: 'addon' });
const llama = await openPlanner({ ...options, evaluator: 'llama' });
for (const [name, input] of Object.entries({ five_questions: fiveQuestions(), largest: largest() })) {
  // A request that is refused for its length has been tokenized, too.
  const plan = (planner: typeof addon) => planner.plan(input).catch(() => undefined);
  const times = await alternating(rounds, { addon: () => plan(addon), llama: () => plan(llama) });
  report({
    bench: 'tokenizer',
    request: name,
    rounds,
    addon_ms: rounded(times('addon').wall_ms),
    llama_ms: rounded(times('llama').wall_ms),
    ratio: rounded(times('addon').wall_ms / times('llama').wall_ms),
  });
}
await addon.close();
await llama.close();
