import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { CasesError, parseCase } from '../../src/eval/cases.ts';
import { readCases } from '../../src/eval/read-cases.ts';

const EXAMPLE = new URL('../../src/eval/example-cases.jsonl', import.meta.url).pathname;
/** Two records, and the same by `xz -9`, which nothing here can write. */
const TWO_LINES = ['one', 'two ☕']
  .map(
    (state, index) =>
      `{"src":"s","state":"${state}","questions":[{"type":"noul","instructions":"Is it?","answer":${index === 0}}]}\n`,
  )
  .join('');
const TWO_LINES_XZ = Buffer.from(
  '/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4ADAAGVdAD2IimdjkbhHxbePaArbUJe6Zni6tWS0GWHHPfPLNNhKUfRln7Vt0WYK8BVJk/V8LuEr2JaiK6ruSTl2TZ4xsHu/neCnrrmffv2Vz/MjXXIx+AtvSij5UouXL6X9WlsnpN17oQIAAAAAAHTyB8s68+aHAAGBAcEBAABE2erkscRn+wIAAAAABFla',
  'base64',
);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tds-cases-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function fileOf(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

function line(question: object, more: object = {}): string {
  return JSON.stringify({ src: 's', state: 'x', questions: [question], ...more });
}

const CHOICE = { type: 'choice', instructions: 'Which?', criteria: { a: 'one', b: null } };
const SCORE = { type: 'score', instructions: 'How much?', criteria: ['low', 'mid', 'high'] };
const NOUL = { type: 'noul', instructions: 'Is it?' };

describe('a case', () => {
  test.each([
    ['a noul', { ...NOUL, answer: true }, 1, [0, 1]],
    ['a noul that people disagreed on', { ...NOUL, answer: false, soft: [3, 1] }, 0, [0.75, 0.25]],
    ['a choice', { ...CHOICE, answer: 'b' }, 1, [0, 1]],
    ['a choice with empty shares', { ...CHOICE, answer: 'b', soft: null }, 1, [0, 1]],
    [
      'a choice that people disagreed on',
      { ...CHOICE, answer: 'a', soft: { a: 0.6, b: 0.2 } },
      0,
      [0.75, 0.25],
    ],
    ['a score', { ...SCORE, answer: 2 }, 2, [0, 0, 1]],
    ['a score that people disagreed on', { ...SCORE, answer: 1, soft: [1, 2, 1] }, 1, [0.25, 0.5, 0.25]],
  ])('%s has the answer and the shares of its labels', (_, question, answer, target) => {
    const [labelled] = parseCase(line(question), 1).questions;
    expect(labelled?.answer).toBe(answer);
    target.forEach((share, index) => {
      expect(labelled?.target[index]).toBeCloseTo(share, 12);
    });
  });

  test.each(['constructor', 'toString', '__proto__'])(
    'has no share of an option %s that is left out',
    (id) => {
      const text = line({ ...CHOICE, criteria: { a: null, other: null }, answer: 'a', soft: { a: 2 } });
      const [labelled] = parseCase(text.replace('other', id), 1).questions;
      expect(labelled).toMatchObject({ classes: ['a', id], target: [1, 0] });
      const given = parseCase(text.replace('other', id).replace('{"a":2}', `{"a":1,"${id}":3}`), 1);
      expect(given.questions[0]?.target).toEqual([0.25, 0.75]);
    },
  );

  test('its digest is of what is asked, not of what is right', () => {
    const digest = (text: string) => parseCase(text, 1).digest;
    expect(digest(line({ ...NOUL, answer: true }))).toBe(
      digest(line({ ...NOUL, answer: false }, { src: 't' })),
    );
    expect(digest(line({ ...NOUL, answer: true }))).not.toBe(
      digest(line({ ...NOUL, answer: true }, { state: 'y' })),
    );
    expect(digest(line({ ...CHOICE, answer: 'a' }))).not.toBe(
      digest(line({ ...CHOICE, criteria: { b: null, a: 'one' }, answer: 'a' })),
    );
  });

  test('is of the same record as another with its state, whatever is asked of both', () => {
    const record = (text: string) => parseCase(text, 1).record;
    const noul = record(line({ ...NOUL, answer: true }));
    expect(record(line({ ...CHOICE, answer: 'a' }, { src: 't' }))).toBe(noul);
    expect(record(line({ ...NOUL, answer: true }, { state: 'y' }))).not.toBe(noul);
  });

  test.each([
    ['no JSON', '{'],
    ['no answer', line(NOUL)],
    ['an answer that is no option', line({ ...CHOICE, answer: 'c' })],
    ['an answer of another type', line({ ...NOUL, answer: 1 })],
    ['a level that is not there', line({ ...SCORE, answer: 3 })],
    ['shares of another length', line({ ...SCORE, answer: 1, soft: [1, 2] })],
    ['shares as a list for a choice', line({ ...CHOICE, answer: 'a', soft: [1, 2] })],
    ['shares of nothing', line({ ...NOUL, answer: true, soft: [0, 0] })],
    ['an unknown type', line({ type: 'text', answer: true })],
    ['one option only', line({ type: 'choice', criteria: { a: null }, answer: 'a' })],
    ['no question', JSON.stringify({ src: 's', state: 'x', questions: [] })],
    ['no record', JSON.stringify({ src: 's', questions: [{ ...NOUL, answer: true }] })],
  ])('with %s is refused, naming its line', (_, text) => {
    expect(() => parseCase(text, 17)).toThrow(CasesError);
    expect(() => parseCase(text, 17)).toThrow('Line 17');
  });
});

describe('a file', () => {
  test('of ours in the repository is an example of every field', async () => {
    const { cases } = await readCases(EXAMPLE);
    const questions = cases.flatMap((subject) => subject.questions);
    expect(new Set(questions.map(({ question }) => question.type))).toEqual(
      new Set(['noul', 'choice', 'score']),
    );
    for (const type of ['noul', 'choice', 'score']) {
      const soft = questions.filter(({ question, target }) => question.type === type && !target.includes(1));
      expect(soft.length).toBeGreaterThan(0);
    }
    expect(new Set(cases.map(({ state }) => (Array.isArray(state) ? 'array' : typeof state))).size).toBe(3);
  });

  test('is the same compressed or not', async () => {
    const content = await readFile(EXAMPLE);
    const plain = await readCases(EXAMPLE);
    expect(await readCases(await fileOf('cases.jsonl.gz', gzipSync(content)))).toEqual(plain);
    const two = await readCases(await fileOf('two.jsonl.xz', TWO_LINES_XZ));
    expect(two.cases.map(({ state }) => state)).toEqual(['one', 'two ☕']);
    expect(await readCases(await fileOf('two.jsonl', TWO_LINES))).toEqual(two);
  });

  test('without a line end at its end, and with empty lines, has the same records', async () => {
    const one = line({ ...NOUL, answer: true });
    const whole = await readCases(await fileOf('whole.jsonl', `${one}\n`));
    expect(await readCases(await fileOf('open.jsonl', `\n${one}\n\n${one}`))).toMatchObject({
      cases: [...whole.cases, ...whole.cases],
    });
  });

  test.each([
    ['cut.jsonl.xz', TWO_LINES_XZ.subarray(0, TWO_LINES_XZ.length - 40)],
    ['cut.jsonl.gz', gzipSync('{}'.repeat(1000)).subarray(0, 20)],
    ['other.jsonl.xz', Buffer.from('not compressed at all, but long enough to be looked at')],
    ['empty.jsonl', ''],
    ['latin.jsonl', Buffer.from(line({ ...NOUL, answer: true }, { state: 'café' }), 'latin1')],
    ['open.jsonl', Buffer.from('\u2615').subarray(0, 2)],
  ])('%s is refused in one sentence', async (name, content) => {
    const path = await fileOf(name, content);
    await expect(readCases(path)).rejects.toBeInstanceOf(CasesError);
  });

  test('that is not UTF-8 is refused with the line before it, and characters between two reads are whole', async () => {
    const long = `${line({ ...NOUL, answer: true }, { state: '\u2615'.repeat(100_000) })}\n`;
    const { cases } = await readCases(await fileOf('long.jsonl', long));
    expect(cases.map(({ state }) => state)).toEqual(['\u2615'.repeat(100_000)]);
    const path = await fileOf('mixed.jsonl', Buffer.concat([Buffer.from(long), Buffer.from([0xe4])]));
    await expect(readCases(path)).rejects.toThrow(
      `The cases ${path} are not UTF-8 after line 1: save them as UTF-8.`,
    );
  });

  test.each(['none.jsonl', 'none.jsonl.gz', 'none.jsonl.xz'])(
    'that is not there is refused: %s',
    async (name) => {
      await expect(readCases(join(directory, name))).rejects.toBeInstanceOf(CasesError);
    },
  );
});
