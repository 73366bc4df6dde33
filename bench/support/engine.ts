import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DecisionEngine, DecisionInput } from '../../native/engine.ts';
import type { Mode, Question } from '../../src/questions/question.ts';
import { writeTinyModel } from '../../test/native/support/gguf.ts';
import { CHATML } from '../../test/native/support/models.ts';
import { FIVE_QUESTIONS } from './five-questions.ts';
import { median } from './statistics.ts';

/** The number of threads of every engine bench. On a busy machine, more of them wait for each other. */
export const THREADS = 1;

/** Returns the five questions as the engine's input. */
export function fiveQuestions(mode: Mode = 'fast'): DecisionInput {
  const { refund, phone, team, mood, urgency } = FIVE_QUESTIONS.questions;
  const noul = (instructions: string): Question => ({
    type: 'noul',
    instructions,
    yes: undefined,
    no: undefined,
  });
  const choice = (instructions: string, criteria: Readonly<Record<string, string | null>>): Question => ({
    type: 'choice',
    instructions,
    options: Object.entries(criteria).map(([id, description]) => ({ id, description })),
  });
  return {
    state: FIVE_QUESTIONS.state,
    questions: [
      noul(refund.instructions),
      noul(phone.instructions),
      choice(team.instructions, team.criteria),
      choice(mood.instructions, mood.criteria),
      { type: 'score', instructions: urgency.instructions, levels: urgency.criteria },
    ],
    mode,
  };
}

let scopes = 0;
/** Answers a request without a kept prefix. Resolves with the number of its tokens. */
export async function answer(engine: DecisionEngine, input: DecisionInput): Promise<number> {
  const plan = await engine.plan(input);
  await engine.evaluate(plan, { scope: `bench ${scopes++}` });
  return plan.input_tokens;
}

/** The median times of a contender. */
export interface Times {
  readonly wall_ms: number;
  /** The CPU time of this process, with all threads. */
  readonly cpu_ms: number;
}

/**
 * Runs the contenders alternately, so that a busy machine slows all of them. The first run of each does not count.
 * Resolves with the medians, by name.
 */
export async function alternating<Name extends string>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Promise<unknown>>>,
): Promise<(name: Name) => Times> {
  const runs = Object.entries<() => Promise<unknown>>(contenders).map(([name, run]) => ({
    name,
    run,
    wall: [] as number[],
    cpu: [] as number[],
  }));
  for (let round = -1; round < rounds; round++) {
    for (const { run, wall, cpu } of runs) {
      const cpu_before = process.cpuUsage();
      const before = performance.now();
      await run();
      if (round < 0) continue;
      wall.push(performance.now() - before);
      const { user, system } = process.cpuUsage(cpu_before);
      cpu.push((user + system) / 1000);
    }
  }
  return (wanted) => {
    const { wall = [], cpu = [] } = runs.find(({ name }) => name === wanted) ?? {};
    return { wall_ms: median(wall), cpu_ms: median(cpu) };
  };
}

/**
 * Runs `use` with a generated chat model whose one layer costs nearly nothing and whose vocabulary is a large model's.
 */
export async function withTinyModel<T>(use: (path: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'tds-bench-'));
  try {
    const path = join(directory, 'tiny.gguf');
    const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ', (letter) => ` ${letter}`);
    // The vocabulary has the words of the request and the prompt, so that the number of tokens is realistic.
    const prompt =
      'Answer the question about the record, from the record alone: Question code option assistant user';
    const spoken = `${JSON.stringify(FIVE_QUESTIONS)} ${prompt}`.match(/[A-Za-z]{2,}/g) ?? [];
    const known = new Set([
      ...spoken.map((word) => ` ${word}`),
      ...spoken.filter((word) => /^[A-Z]|ss|us/.test(word)),
    ]);
    const others = Array.from({ length: 140_000 }, (_, index) => ` ${index.toString(36)}`);
    await writeTinyModel(path, {
      control: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
      words: [...letters, ' AA', ' AB', ' Yes', ' No', ...known, ...others],
      chat_template: CHATML,
      context_tokens: 8192,
      layers: 1,
    });
    return await use(path);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
