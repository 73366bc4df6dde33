import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { readCases } from '../../../src/eval/read-cases.ts';
import { ROOT } from '../../architecture/source-files.ts';

const FOLDER = join(ROOT, 'native/training/cases');
const WITHHELD = 'withheld.jsonl';
const files = [...new Bun.Glob('*.jsonl').scanSync(FOLDER)].sort();

/** The records of a file, each as one text. */
async function records(file: string): Promise<readonly string[]> {
  const { cases } = await readCases(join(FOLDER, file));
  return cases.map(({ state }) => JSON.stringify(state));
}

describe('our own cases', () => {
  test.each(files)('%s can be evaluated, and belongs to one split', async (file) => {
    expect((await records(file)).length).toBeGreaterThan(0);
    const text = await Bun.file(join(FOLDER, file)).text();
    const splits = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).split);
    expect(new Set(splits)).toEqual(new Set([file === WITHHELD ? 'test' : 'train']));
  });

  test('no withheld record is trained on', async () => {
    const trained = await Promise.all(files.filter((file) => file !== WITHHELD).map(records));
    const seen = new Set(trained.flat());
    expect((await records(WITHHELD)).filter((record) => seen.has(record))).toEqual([]);
  });
});
