import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { render } from '../../../native/plan/render.ts';
import { parseCase } from '../../../src/eval/cases.ts';
import { readCases } from '../../../src/eval/read-cases.ts';
import { isJsonObject } from '../../../src/json/json-value.ts';
import { readJson } from '../../../src/json/read-json.ts';
import { ROOT } from '../../architecture/source-files.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { PYTHON, runPython } from './support.ts';

setDefaultTimeout(120_000);

const GOOD = { src: 'tickets', state: 'It is late.', questions: [{ type: 'noul', answer: true }] };
const choice = (change: object) =>
  line({ type: 'choice', criteria: { a: null, b: 'x' }, answer: 'a', ...change });
const score = (change: object) => line({ type: 'score', criteria: ['low', 'high'], answer: 1, ...change });
const record = (state: string) => JSON.stringify({ ...GOOD, state: [] }).replace('[]', state);
const line = (question: object) => JSON.stringify({ ...GOOD, questions: [question] });

/** A second line that cannot be used, and the sentence's end. */
const LINES = [
  [
    'an option that the question does not have',
    choice({ answer: 'c' }),
    'questions[0]: the answer "c" is none of its options ("a", "b").',
  ],
  ['a missing answer', line({ type: 'noul' }), 'questions[0] has no answer.'],
  [
    'an answer of another type',
    line({ type: 'noul', answer: 'yes' }),
    'questions[0]: the answer "yes" is neither true nor false.',
  ],
  ['a level that is not there', score({ answer: 2 }), 'questions[0]: the answer 2 is no level from 0 to 1.'],
  [
    'a level that is a boolean',
    score({ answer: true }),
    'questions[0]: the answer true is no level from 0 to 1.',
  ],
  [
    'one option',
    choice({ criteria: { a: null } }),
    'questions[0] has 1 options: from 2 to 255 are possible.',
  ],
  [
    'levels for a choice',
    choice({ criteria: ['a', 'b'] }),
    'questions[0]: the criteria of a choice are an object of options.',
  ],
  ['shares that are too few', score({ soft: [1] }), 'questions[0]: "soft" has not a share for each answer.'],
  [
    'shares that are all 0',
    choice({ soft: { a: 0 } }),
    'questions[0]: the shares of "soft" are not numbers from 0 with a positive sum.',
  ],
  [
    'an unknown type',
    line({ type: 'text', answer: 'x' }),
    'questions[0] has no "type" that is one of noul, choice, score.',
  ],
  [
    'no record',
    JSON.stringify({ ...GOOD, state: null }),
    '"state", the record, is not a string, an object or an array.',
  ],
  ['no question', JSON.stringify({ ...GOOD, questions: [] }), '"questions" is no list with a question.'],
  [
    'a number that JSON does not have',
    '{"src":"x","state":[NaN],"questions":[{"type":"noul","answer":true}]}',
    'NaN is no number of JSON.',
  ],
  ['what is no JSON', 'tickets;late;yes', 'it is not JSON.'],
  [
    'a share beyond all numbers',
    line({ type: 'noul', answer: true, soft: ['huge', 1] }).replace('"huge"', '1e999'),
    'questions[0]: the shares of "soft" are not numbers from 0 with a positive sum.',
  ],
  ['a level between two', score({ answer: 0.5 }), 'questions[0]: the answer 0.5 is no level from 0 to 1.'],
  [
    'levels of arrays beyond those of a request',
    record(`${'['.repeat(65)}${']'.repeat(65)}`),
    'objects and arrays are nested in more than 65 levels.',
  ],
] as const;

/** Lines that `tds eval` reads and this program cannot train on. */
const HALVES = [
  ['of a record', record('["\\ud83d"]')],
  ['of an option', choice({ criteria: { a: '\ud83d', b: null } })],
  ['of a set', JSON.stringify({ ...GOOD, src: '\udc00' })],
] as const;

describe.skipIf(PYTHON === null)(
  'fine-tuning on cases that cannot be used is refused in one sentence',
  () => {
    let directory: string;
    beforeAll(() => {
      directory = mkdtempSync(join(tmpdir(), 'tds-training-'));
    });
    afterAll(() => rmSync(directory, { recursive: true, force: true }));

    /** Fine-tunes on a file that must be refused, and expects that nothing else was written. */
    async function refusal(name: string, content: string | Uint8Array): Promise<string> {
      const path = join(directory, name);
      await Bun.write(path, content);
      const before = await readdir(directory);
      const command = [
        '-m',
        'decision_training',
        'finetune',
        path,
        join(directory, 'out'),
        '--model',
        'none.gguf',
      ];
      const { code, stdout, stderr } = await runPython(PYTHON ?? '', command);
      expect({ code, stdout, lines: stderr.trim().split('\n').length }).toEqual({
        code: 1,
        stdout: '',
        lines: 1,
      });
      expect(await readdir(directory)).toEqual(before);
      return stderr.replace(path, 'FILE');
    }

    test.each(LINES)('%s', async (_, bad, reason) => {
      const said = await refusal('cases.jsonl', `${JSON.stringify(GOOD)}\n${bad}\n`);
      expect(said).toBe(`decision_training: Line 2 of FILE is not usable: ${reason}\n`);
      expect(() => parseCase(bad, 2)).toThrow('Line 2');
    });

    test.each(HALVES)('half of a surrogate pair %s', async (_, bad) => {
      expect(await refusal('half.jsonl', `${bad}\n`)).toBe(
        'decision_training: Line 1 of FILE is not usable: a text has half of a surrogate pair.\n',
      );
    });

    const FINETUNE = ['finetune', 'none.jsonl', 'out', '--model', 'none.gguf'];
    test.each([
      [FINETUNE, '--name', 'acme/support', 'a name has letters, digits, dots, dashes and underscores only'],
      [FINETUNE, '--test-share', '30', 'a share is between 0 and 1'],
      [FINETUNE, '--validation-share', '-0.2', 'a share is between 0 and 1'],
      [['export', 'run', 'out'], '--temperature', '0', 'a temperature is a number above 0'],
      [['export', 'run', 'out'], '--temperature', 'inf', 'a temperature is a number above 0'],
    ])('%s %s %s', async (arguments_, name, value, reason) => {
      const command = [...arguments_, `${name}=${value}`];
      const { code, stderr } = await runPython(PYTHON ?? '', ['-m', 'decision_training', ...command]);
      expect(code).toBe(2);
      expect(stderr).toEndWith(`error: argument ${name}: ${reason}\n`);
    });

    test('a file that ends in the middle of a line', async () => {
      const lines = `${JSON.stringify(GOOD)}\n${JSON.stringify(GOOD)}\n`;
      const said = await refusal('cut.jsonl', lines.slice(0, -20));
      expect(said).toBe(
        'decision_training: Line 2 of FILE is not usable: the file ends in the middle of it.\n',
      );
    });

    test('a compressed file that ends in the middle', async () => {
      const compressed = gzipSync(
        Array.from(
          { length: 5000 },
          (_, i) => `${line({ type: 'noul', instructions: `${i}`, answer: true })}\n`,
        ).join(''),
      );
      const said = await refusal('cut.jsonl.gz', compressed.subarray(0, -500));
      expect(said).toMatch(
        /^decision_training: FILE is damaged or ends in the middle, after line \d+: give a complete file\.\n$/,
      );
    });

    test('a file that is none, is not UTF-8, or has no case', async () => {
      expect(await refusal('empty.jsonl', '\n\n')).toBe('decision_training: FILE has no case.\n');
      expect(await refusal('latin.jsonl', new Uint8Array([0x7b, 0xe4, 0x7d, 0x0a]))).toBe(
        'decision_training: FILE is not UTF-8 after line 0.\n',
      );
      const command = ['-m', 'decision_training', 'check', join(directory, 'none.jsonl')];
      const { stderr } = await runPython(PYTHON ?? '', command);
      expect(stderr).toMatch(
        /^decision_training: \S+none\.jsonl cannot be read \(No such file or directory\)\.\n$/,
      );
    });
  },
);

test.skipIf(PYTHON === null)('the example cases of tds eval can be trained on', async () => {
  const command = ['-m', 'decision_training', 'check', join(ROOT, 'src/eval/example-cases.jsonl')];
  const { code, stdout } = await runPython(PYTHON ?? '', command);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^12 cases with \d+ questions can be used\n$/),
  });
});

test.skipIf(PYTHON === null)('what tds eval reads can be prepared and trained on', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'cases.jsonl');
  const lines = [
    score({}).replace('"answer":1', '"answer":1.0'),
    choice({ soft: null }),
    record(`[${'7'.repeat(400)}, ${'7'.repeat(5_000)}, 12345678901234567890, -1e999, 1.5, 9007199254740992]`),
    record(`${'['.repeat(64)}${']'.repeat(64)}`),
  ];
  const [, , numbers = ''] = lines;
  await Bun.write(path, `\ufeff${lines.join('\n')}\n`);
  const { cases } = await readCases(path);
  expect(cases.length).toBe(lines.length);
  const prepare = ['prepare', directory.path, '--no-base', '--records', path];
  const prepared = await runPython(PYTHON ?? '', ['-m', 'decision_training', ...prepare]);
  expect(prepared).toMatchObject({ code: 0, stderr: '' });
  const RENDER = `
import sys
from pathlib import Path
from decision_training.cases import read_cases
from decision_training.prompt import render
print(render(read_cases(Path(sys.argv[1]))[2].state))
`;
  const read = readJson(numbers);
  const state = isJsonObject(read) ? read.get('state') : undefined;
  const { stdout } = await runPython(PYTHON ?? '', ['-c', RENDER, join(directory.path, 'records.jsonl')]);
  expect(stdout.trimEnd()).toBe(render(state ?? null));
});
