import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Value } from '@sinclair/typebox/value';
import { Calibration } from '../../native/engine.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { ENOUGH_NOULS } from '../eval/support.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { finished } from '../support/finished.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectRefused, firstAsProcess } from './support.ts';

// Each command is a process that loads a model, on cores that may be shared.
setDefaultTimeout(120_000);

const EXAMPLE = new URL('../../src/eval/example-cases.jsonl', import.meta.url).pathname;

const root = temporaryDirectory();
const directory = root.path;
let model: string;
/** The example with its questions so often that every type has enough labels for a temperature. */
let labels: string;
/** The first evaluation, uninterrupted; its scores are in the folder `whole`. */
let whole: Awaited<ReturnType<typeof run>>;
beforeAll(async () => {
  model = await newModel('model');
  labels = join(directory, 'labels.jsonl');
  const records = (await readFile(EXAMPLE, 'utf8')).trimEnd().split('\n');
  await writeFile(labels, records.map((record) => `${often(record)}\n`).join(''));
  whole = await run('eval', EXAMPLE, '--model', model, '--output', 'whole');
});
afterAll(() => root.remove());

function often(record: string): string {
  const { questions, ...others } = JSON.parse(record);
  return JSON.stringify({ ...others, questions: Array.from({ length: 15 }, () => questions).flat() });
}

/** A generated model in a folder of its own; another seed is another model. */
async function newModel(name: string, seed = 1): Promise<string> {
  const path = join(await mkdtemp(join(directory, `${name}-`)), 'tiny.gguf');
  await writeTinyModel(path, { ...TINY_MARKERS, seed });
  return path;
}

function start(...args: readonly string[]) {
  return Bun.spawn([process.execPath, MAIN, ...args, '--gpu', 'none', '--threads', '1'], {
    cwd: directory,
    stdout: 'pipe',
    stderr: 'pipe',
  });
}

const { command } = firstAsProcess();
const run = (...args: readonly string[]) =>
  command([...args, '--gpu', 'none', '--threads', '1'], { cwd: directory });

/** The scores that are kept in a folder, without how long they took. */
async function scoresIn(output: string, name: string): Promise<string> {
  const content = await readFile(join(directory, output, name), 'utf8');
  return content.replaceAll(/,"latency_ms":[^}]*/g, '');
}

describe('tds eval', () => {
  test('prints tables, and writes a report that needs no other file and shows no record', async () => {
    const { code, stdout, stderr } = whole;
    expect(code).toBe(0);
    expect(stdout).toContain('12 of 12 records, mode fast');
    for (const heading of ['LEVEL ERROR', 'of which at most 5% are wrong', 'THRESHOLD', 'OUT OF FOLD']) {
      expect(stdout).toContain(heading);
    }
    for (const word of ['noul', 'choice', 'score', 'options reversed', 'uncalibrated', 'Latency']) {
      expect(stdout).toContain(word);
    }
    expect(stderr).toContain('100%');
    const files = (await readdir(join(directory, 'whole'))).sort();
    expect(files).toEqual([
      'example-cases.fast.html',
      'example-cases.fast.json',
      'example-cases.fast.scores.jsonl',
    ]);
    const html = await readFile(join(directory, 'whole', 'example-cases.fast.html'), 'utf8');
    expect(html.match(/<svg/g)?.length).toBe(3);
    for (const heading of ['LEVEL ERROR', 'of which at most 5% are wrong', 'THRESHOLD']) {
      expect(html).toContain(heading);
    }
    expect(html).not.toMatch(/(src|href)=|url\(|@import|<script/);
    for (const file of files) {
      const content = await readFile(join(directory, 'whole', file), 'utf8');
      expect(content).not.toContain('charged twice');
      expect(content).not.toContain('Has the order been paid');
    }
  });

  test('--json is the report: every metric of every type with its interval', async () => {
    const { stdout } = await run('eval', EXAMPLE, '--model', model, '--output', 'whole', '--json');
    const report = JSON.parse(stdout);
    expect(report.uncalibrated.types.map(({ type }: { type: string }) => type)).toEqual([
      'noul',
      'choice',
      'score',
    ]);
    for (const { metrics } of report.uncalibrated.types) {
      for (const name of ['accuracy', 'balanced_accuracy', 'brier', 'negative_log_likelihood']) {
        const { value, low, high } = metrics[name];
        expect(low).toBeLessThanOrEqual(value);
        expect(high).toBeGreaterThanOrEqual(value);
      }
    }
    expect(report.cases).toMatchObject({ records: 12, evaluated: 12, refused: 0 });
    expect(report.calibrated).toBeNull();
    expect(report.folds).toEqual({ count: 5, by: 'set' });
    for (const { type, metrics, abstaining } of report.uncalibrated.types) {
      expect(Object.keys(abstaining).sort()).toEqual(['error_rate', 'out_of_fold', 'share', 'threshold']);
      expect(abstaining.share).toBe(metrics.automatic_share.value);
      expect(metrics.mean_absolute_level_error.value === null).toBe(type !== 'score');
    }
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'interrupted by %s, it goes on where it was and comes to the same scores',
    async (signal, code) => {
      const output = `parts-${signal}`;
      const args = ['eval', EXAMPLE, '--model', model, '--output', output];
      const child = start(...args);
      // The first line of progress comes when the model has been loaded.
      const progress = child.stderr.getReader();
      await progress.read();
      child.kill(signal);
      while (!(await progress.read()).done);
      const first = await child.exited;
      const kept = await scoresIn(output, 'example-cases.fast.scores.jsonl');
      expect((await run(...args)).code).toBe(0);
      const all = await scoresIn(output, 'example-cases.fast.scores.jsonl');
      // Where the machine was faster than the signal, the first run had everything.
      expect(first === code || kept === all).toBe(true);
      expect(all.startsWith(kept)).toBe(true);
      expect(all).toBe(await scoresIn('whole', 'example-cases.fast.scores.jsonl'));
    },
  );

  test('in consistent mode the order of options flips nothing', async () => {
    const { stdout } = await run(
      ...['eval', EXAMPLE, '--model', model, '--output', 'whole', '--mode', 'consistent', '--json'],
    );
    const { stability } = JSON.parse(stdout);
    const backward = stability.find(({ probe }: { probe: string }) => probe === 'options_reversed');
    expect(backward).toMatchObject({ flip_rate: 0, mean_change: expect.closeTo(0, 9) });
    expect(backward.questions).toBeGreaterThan(5);
  });

  test('--limit draws that many records', async () => {
    const { stdout } = await run('eval', EXAMPLE, '--model', model, '--output', 'some', '--limit', '5');
    expect(stdout).toContain('5 of 12 records');
  });

  test.each([
    ['no file', ['eval', 'nowhere.jsonl'], 'nowhere.jsonl'],
    ['a file of something else', ['eval', MAIN], 'Line 1'],
    ['no model', ['eval', EXAMPLE, '--model', 'nowhere.gguf'], 'nowhere.gguf'],
  ])('%s is one sentence', async (_, args, word) => {
    const { code, stderr } = await run(...args);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tds: [^\n]+\n$/);
    expect(stderr).toContain(word);
    expect(stderr).not.toContain('unexpected failure');
  });

  test('scores of another model are not continued', async () => {
    const other = await newModel('other', 2);
    const { code, stderr } = await run('eval', EXAMPLE, '--model', other, '--output', 'whole');
    expect(code).toBe(1);
    expect(stderr).toContain('another model');
  });
});

describe('tds calibrate', () => {
  test('fits both modes, and what it writes beside the weights is what eval then applies', async () => {
    const own = await newModel('calibrated');
    const { code, stdout } = await run('calibrate', labels, '--model', own, '--work', 'fit');
    expect(code).toBe(0);
    expect(stdout).toContain('Mode fast');
    expect(stdout).toContain('Mode consistent');
    expect(stdout).toContain('A running service takes it by "tds model reload ID".\n');
    const file = own.replace('.gguf', '.calibration.json');
    const written: unknown = JSON.parse(await readFile(file, 'utf8'));
    expect(Value.Check(Calibration, written)).toBe(true);
    const report = JSON.parse(
      (await run('eval', labels, '--model', own, '--output', 'fit', '--probes', '0', '--json')).stdout,
    );
    const likelihood = (results: typeof report.uncalibrated) =>
      results.types.map((group: typeof report) => group.metrics.negative_log_likelihood.value);
    likelihood(report.calibrated).forEach((after: number, index: number) => {
      expect(after).toBeLessThanOrEqual(likelihood(report.uncalibrated)[index] + 1e-9);
    });
    // A temperature never changes which answer is the most likely.
    expect(report.calibrated.types.map((group: typeof report) => group.metrics.accuracy.value)).toEqual(
      report.uncalibrated.types.map((group: typeof report) => group.metrics.accuracy.value),
    );
    const other = await newModel('other', 3);
    await copyFile(file, join(dirname(other), 'calibration.json'));
    const refused = await run('eval', EXAMPLE, '--model', other, '--output', 'other');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('other weights');
  });

  test('leaves the temperatures of types with too few labels as they are, and says which', async () => {
    const own = await newModel('kept');
    const path = own.replace('.gguf', '.calibration.json');
    const temperatures = async () => Value.Decode(Calibration, await Bun.file(path).json()).temperatures;
    expect((await run('calibrate', labels, '--model', own, '--work', 'kept')).code).toBe(0);
    const present = await temperatures();
    const nouls = join(directory, 'nouls.jsonl');
    await writeFile(nouls, ENOUGH_NOULS);
    const { code, stdout } = await run('calibrate', nouls, '--model', own, '--work', 'kept');
    expect(code).toBe(0);
    expect(stdout).toContain(
      'Types with fewer than 100 labels, whose temperatures stay as they are: choice, score.\n',
    );
    const now = await temperatures();
    for (const mode of ['fast', 'consistent'] as const) {
      const { noul: refitted, ...others } = now[mode];
      const { noul: before, ...kept } = present[mode];
      expect(others).toEqual(kept);
      expect(refitted).not.toBe(before);
    }
    const few = await run('calibrate', EXAMPLE, '--model', own, '--work', 'kept');
    expect(few).toMatchObject({ code: 1, stdout: '' });
    expect(few.stderr).toEndWith(
      'tds: No type of question has 100 labels, so the calibration stays as it is: give more.\n',
    );
    expect(await temperatures()).toEqual(now);
  });

  test('--output names another file, and the weights stay as they are', async () => {
    const { code, stdout } = await run(
      ...['calibrate', labels, '--model', model, '--work', 'whole', '--output', 'elsewhere.json'],
    );
    expect(code).toBe(0);
    // No service would take it.
    expect(stdout).toEndWith('\nCalibration: elsewhere.json\n');
    expect(await readdir(dirname(model))).toEqual(['tiny.gguf']);
    expect(Value.Check(Calibration, await Bun.file(join(directory, 'elsewhere.json')).json())).toBe(true);
  });

  test('is refused before it asks where its file cannot be written', async () => {
    const refused = await run(
      ...['calibrate', labels, '--model', model, '--work', 'never', '--output', 'missing/one.json'],
    );
    expect(refused).toEqual({
      code: 1,
      stdout: '',
      stderr: 'tds: missing/one.json cannot be written (ENOENT): name another file with --output.\n',
    });
    expect(await readdir(directory)).not.toContain('never');
  });

  test('of the weights in an executable is refused before it asks: the next start would put the shipped file back', async () => {
    const unpacked = join(directory, 'unpacked');
    await cp(dirname(dirname(MAIN)), unpacked, { recursive: true });
    await writeFile(join(unpacked, 'package.json'), '{}');
    await writeFile(join(unpacked, 'build.json'), '{}');
    await symlink(projectFile('node_modules'), join(unpacked, 'node_modules'));
    const weights = 'native/models/decision-1';
    await mkdir(join(unpacked, weights), { recursive: true });
    for (const name of await readdir(projectFile(weights))) {
      await symlink(projectFile(join(weights, name)), join(unpacked, weights, name));
    }
    const child = Bun.spawn(
      [
        ...[process.execPath, join(unpacked, 'src/main.js'), 'calibrate', EXAMPLE, '--work', 'never'],
        ...['--evaluator', 'llama', '--gpu', 'none', '--threads', '1'],
      ],
      { cwd: directory, stdout: 'pipe', stderr: 'pipe' },
    );
    expectRefused(
      await finished(child),
      'The embedded weights keep no other calibration than theirs: copy their folder, and calibrate and serve the copy with --model, or name a file with --output.',
    );
    expect(await readdir(directory)).not.toContain('never');
  });

  test('a broken calibration beside the weights does not keep a new one from being fitted', async () => {
    const own = await newModel('broken');
    await writeFile(join(dirname(own), 'calibration.json'), '{}');
    expect((await run('calibrate', labels, '--model', own, '--work', 'broken')).code).toBe(0);
  });
});
