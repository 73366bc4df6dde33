import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readTuning } from '../../src/tuning/tuning-file.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { firstAsProcess } from './support.ts';

// Each command is a process that loads a model, on cores that may be shared.
setDefaultTimeout(240_000);

const QUESTION = { type: 'noul', instructions: 'Is a refund asked for?' };

const { command } = firstAsProcess();
const directory = temporaryDirectory();
let model: string;
beforeAll(async () => {
  model = join(directory.path, 'tiny.gguf');
  await writeTinyModel(model, TINY_MARKERS);
});
afterAll(() => directory.remove());

interface Labelled {
  readonly state: string;
  readonly answer: unknown;
  readonly question?: object;
}

/** Records that a model of random weights can be nearly sure about once it is told how rare a yes is. */
function mostlyNo(count: number): Labelled[] {
  return Array.from({ length: count }, (_, number) => ({
    state: `Secretword${number} wrote about parcel ${number}.`,
    answer: number % 10 === 0,
  }));
}

async function casesFile(name: string, labelled: readonly Labelled[]): Promise<string> {
  const path = join(directory.path, name);
  const lines = labelled.map(({ state, answer, question = QUESTION }) =>
    JSON.stringify({ src: 'own', state, questions: [{ ...question, answer }] }),
  );
  await writeFile(path, lines.map((line) => `${line}\n`).join(''));
  return path;
}

function tuneArguments(cases: string, output: string, work = 'work'): readonly string[] {
  return [
    ...['tune', cases, '--model', model, '--output', output, '--work', join(directory.path, work)],
    ...['--gpu', 'none', '--threads', '1'],
  ];
}

function tune(cases: string, output: string, ...more: readonly string[]) {
  return command([...tuneArguments(cases, output), ...more], { cwd: directory.path });
}

const written = (name: string) => readFile(join(directory.path, name), 'utf8');

describe('tds tune', () => {
  test('prints what a correction is worth, and writes a file without any record, the same for the same seed', async () => {
    const cases = await casesFile('mostly-no.jsonl', mostlyNo(40));
    const { code, stdout, stderr } = await tune(cases, 'one.tuning');
    expect({ code, stderr: stderr.includes('100%') }).toEqual({ code: 0, stderr: true });
    const next = 'Serve it by "tds model add ID --tuning one.tuning".';
    for (const text of ['Is a refund asked for?', 'LABELS', 'NLL BEFORE', '100 MORE LABELS', ' 40 ', next]) {
      expect(stdout).toContain(text);
    }
    const text = await written('one.tuning');
    expect(text.toLowerCase()).not.toContain('secretword');
    expect(text).not.toContain('parcel');
    const { header, entries } = readTuning(text);
    expect(header).toMatchObject({ model: null, fitted_on: { records: 40, seed: 1 } });
    expect(entries.map(({ question, labels }) => [question.instructions, labels])).toEqual([
      ['Is a refund asked for?', 40],
    ]);
    const [entry] = entries;
    expect(entry?.loss.after).toBeLessThan(entry?.loss.before ?? 0);
    const scores = await written('work/mostly-no.fast.scores.jsonl');
    await tune(cases, 'two.tuning');
    expect(await written('two.tuning')).toBe(text);
    // A second run asks no question again.
    expect(await written('work/mostly-no.fast.scores.jsonl')).toBe(scores);
  });

  test('stopped, it writes no corrections and keeps its scores, and goes on to the same file', async () => {
    const cases = await casesFile('stopped.jsonl', mostlyNo(400));
    const child = Bun.spawn([process.execPath, MAIN, ...tuneArguments(cases, 'parts.tuning', 'parts')], {
      cwd: directory.path,
      stdout: 'ignore',
      stderr: 'pipe',
    });
    const progress = child.stderr.getReader();
    // The first line of progress comes when the model has been loaded.
    await progress.read();
    child.kill('SIGTERM');
    while (!(await progress.read()).done);
    expect(await child.exited).toBe(143);
    expect(await readdir(directory.path)).not.toContain('parts.tuning');
    const kept = await written('parts/stopped.fast.scores.jsonl');
    const args = tuneArguments(cases, 'parts.tuning', 'parts');
    expect((await command(args, { cwd: directory.path })).code).toBe(0);
    expect((await written('parts/stopped.fast.scores.jsonl')).startsWith(kept)).toBe(true);
    await tune(cases, 'whole.tuning');
    expect(await written('parts.tuning')).toBe(await written('whole.tuning'));
  });

  test('says of each question why nothing was fitted, counts contradictions, and writes no file for nothing', async () => {
    const one_class = { type: 'noul', instructions: 'Is it a letter?' };
    const few = { type: 'noul', instructions: 'Is it rare?' };
    const records = mostlyNo(12);
    const cases = await casesFile('nothing.jsonl', [
      ...records.map(({ state }) => ({ state, answer: true, question: one_class })),
      ...records.slice(0, 7).map(({ state, answer }) => ({ state, answer, question: few })),
      { state: records[0]?.state ?? '', answer: false, question: few },
    ]);
    const { code, stdout, stderr } = await tune(cases, 'nothing.tuning');
    expect(code).toBe(1);
    expect(stdout).toContain('none: fewer than 8 labels');
    expect(stdout).toContain('none: all labels are one answer');
    expect(stdout).toContain('Records with more than one answer to a question: 1.');
    expect(stderr).toEndWith(
      'tds: No correction is better than the model as it is, so no file was written: give more labels.\n',
    );
    expect(await readdir(directory.path)).not.toContain('nothing.tuning');
  });

  test('refuses labels that are no answers, and a file that ends in the middle, before any record is asked', async () => {
    const wrong = await casesFile('wrong.jsonl', [...mostlyNo(9), { state: 'x', answer: 'perhaps' }]);
    expect(await tune(wrong, 'wrong.tuning')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        "tds: Line 10 of the cases is not usable: /questions/0: the answer is none of the question's.\n",
    });
    const whole = await casesFile('cut.jsonl', mostlyNo(9));
    await writeFile(whole, (await readFile(whole, 'utf8')).slice(0, -40));
    expect(await tune(whole, 'cut.tuning')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^tds: Line 9 of the cases is not usable: .*\n$/),
    });
    expect((await readdir(directory.path)).filter((name) => /^(wrong|cut)\.tuning/.test(name))).toEqual([]);
  });

  test('refuses a file that cannot be written before any record is asked', async () => {
    const cases = join(directory.path, 'mostly-no.jsonl');
    expect(await tune(cases, 'missing/one.tuning')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'tds: missing/one.tuning cannot be written (ENOENT): name another file with --output.\n',
    });
  });
});
