import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STATE_SIZE } from '../../native/engine.ts';
import { type EvalCase, parseCase } from '../../src/eval/cases.ts';
import { scoredQuestions } from '../../src/eval/collect.ts';
import type { MeasuredModel } from '../../src/eval/measured-model.ts';
import { runCases } from '../../src/eval/run.ts';
import { ScoreFile } from '../../src/eval/score-file.ts';
import { readStates, storedStates } from '../../src/eval/stored-states.ts';
import type { Question } from '../../src/questions/question.ts';

const directory = mkdtempSync(join(tmpdir(), 'tds-run-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const noul = (instructions: string): Question => ({
  type: 'noul',
  instructions,
  yes: undefined,
  no: undefined,
});
const STATES = [Array.from({ length: STATE_SIZE }, (_, at) => at / 4)];
const CASE: EvalCase = {
  source: 'own',
  state: 'a record',
  digest: 'd',
  record: 'r',
  questions: ['one', 'two'].map((text) => ({
    question: noul(text),
    answer: 1,
    classes: ['no', 'yes'],
    target: [0, 1],
  })),
};

test('a record whose hidden states are needed is asked again, and no other one is', async () => {
  const asked: (readonly boolean[])[] = [];
  const model = (reads_states: boolean): MeasuredModel => ({
    facts: {
      ...{ weights_sha256: 'a', profile: 'p', context_tokens: 100, evaluator: 'addon', device: 'cpu' },
      ...{ temperatures: null, reads_states },
    },
    answer({ questions }, needsStates = () => false) {
      const needed = questions.map((_, index) => reads_states && needsStates(index));
      asked.push(needed);
      const states = needed.map((is_needed) => (is_needed ? STATES : null));
      return Promise.resolve({ scores: questions.map(() => [1]), states, input_tokens: 3 });
    },
    close: () => Promise.resolve(),
  });
  const file = ScoreFile.open(join(directory, 'scores.jsonl'), {
    ...{ weights_sha256: 'a', profile: 'p', mode: 'fast', context_tokens: 100 },
  });
  const run = (reads_states: boolean, needed: readonly string[]) =>
    runCases([CASE], {
      ...{ model: model(reads_states), mode: 'fast', file, probed_records: 0 },
      clock: { monotonic_ms: () => 0 },
      needsStates: ({ instructions }) => needed.includes(String(instructions)),
    });
  await run(true, []);
  await run(true, []);
  await run(false, ['two']);
  expect(asked).toEqual([[false, false]]);
  await run(true, ['two']);
  await run(true, ['two']);
  await run(true, []);
  expect(asked.slice(1)).toEqual([[false, true]]);
  const [first, second] = file.get('d', 'original')?.states ?? [];
  expect(first).toBeNull();
  expect(readStates(second ?? '', 1)).toEqual(STATES);
  // States of an earlier program have another number of numbers.
  const numbers = { scores: [[1], [1]], input_tokens: 3, latency_ms: 0 };
  const earlier = storedStates([[1, 2, 3]]);
  file.add({ digest: 'd', variant: 'original', ...numbers, states: [null, earlier] });
  await run(true, []);
  await run(true, ['two']);
  expect(asked.slice(2)).toEqual([[false, true]]);
  file.close();
});

test('a record on several lines is one, with each of its questions', () => {
  const cases = ['one', 'two'].map((instructions, index) =>
    parseCase(
      JSON.stringify({
        ...{ src: 'own', state: { id: 1 } },
        questions: [{ type: 'noul', instructions, answer: true }],
      }),
      index + 1,
    ),
  );
  const file = ScoreFile.open(join(directory, 'lines.jsonl'), {
    ...{ weights_sha256: 'a', profile: 'p', mode: 'fast', context_tokens: 100 },
  });
  cases.forEach(({ digest }, index) => {
    file.add({ digest, variant: 'original', scores: [[index]], input_tokens: 3, latency_ms: 0 });
  });
  const questions = scoredQuestions(cases, file);
  file.close();
  expect(questions.map(({ scores }) => scores)).toEqual([[0], [1]]);
  expect(new Set(questions.map(({ record }) => record)).size).toBe(1);
});
