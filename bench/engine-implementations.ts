/**
 * Time of a request of five questions through the addon ÷ the time through node-llama-cpp's own objects (`llama/`), and
 * ÷ the time through its `LlamaDecisionContext`. It uses a generated model that costs nearly nothing, so that only
 * overhead is left (target: at most 0.2), and the embedded one (target: below 0.8).
 *
 *   bun bench/engine-implementations.ts [rounds, default 9]
 */
import { type ChatWrapper, GeneralChatWrapper, getLlama } from 'node-llama-cpp';
import { EMBEDDED_WEIGHTS, openEngine } from '../native/engine.ts';
import { alternating, answer, fiveQuestions, THREADS, withTinyModel } from './support/engine.ts';
import { FIVE_QUESTIONS } from './support/five-questions.ts';
import { report, rounded } from './support/statistics.ts';

const rounds = Number(process.argv[2] ?? 9);

async function compare(name: string, model_path: string): Promise<void> {
  const options = { model_path, gpu: false, threads: THREADS } as const;
  const addon = await openEngine({ ...options, evaluator: 'addon' });
  const through_llama = await openEngine({ ...options, evaluator: 'llama' });
  const llama = await getLlama({ build: 'never', gpu: false, maxThreads: 0, progressLogs: false });
  const model = await llama.loadModel({ modelPath: model_path });
  const chatWrapper: ChatWrapper = new GeneralChatWrapper();
  const decisions = await model.createDecisionContext({
    threads: THREADS,
    parallelQuestions: 5,
    chatWrapper,
  });
  const { refund, phone, team, mood, urgency } = FIVE_QUESTIONS.questions;
  const input = fiveQuestions();
  let request = 0;
  const times = await alternating(rounds, {
    addon: () => answer(addon, input),
    llama: () => answer(through_llama, input),
    decision_context: () =>
      // The record is new, as for our engine.
      decisions.decide(`${request++} ${FIVE_QUESTIONS.state}`, {
        refund: { type: 'noul', instruction: refund.instructions },
        phone: { type: 'noul', instruction: phone.instructions },
        team: { type: 'choice', instruction: team.instructions, criteria: team.criteria },
        mood: { type: 'choice', instruction: mood.instructions, criteria: mood.criteria },
        urgency: { type: 'score', instruction: urgency.instructions, criteria: urgency.criteria },
      }),
  });
  report({
    bench: 'engine-implementations',
    model: name,
    threads: THREADS,
    rounds,
    input_tokens: (await addon.plan(input)).input_tokens,
    addon_ms: rounded(times('addon').wall_ms),
    llama_ms: rounded(times('llama').wall_ms),
    decision_context_ms: rounded(times('decision_context').wall_ms),
    to_llama: rounded(times('addon').wall_ms / times('llama').wall_ms),
    to_llama_by_cpu_time: rounded(times('addon').cpu_ms / times('llama').cpu_ms),
    to_decision_context: rounded(times('addon').wall_ms / times('decision_context').wall_ms),
    to_decision_context_by_cpu_time: rounded(times('addon').cpu_ms / times('decision_context').cpu_ms),
  });
  await decisions.dispose();
  await model.dispose();
  await through_llama.close();
  await addon.close();
}

await withTinyModel((path) => compare('generated', path));
await compare('decision-1', EMBEDDED_WEIGHTS);
process.exit(0);
