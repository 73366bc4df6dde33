import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { appendFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ScoreEntry,
  ScoreFile,
  ScoreFileError,
  type ScoreFileHeader,
} from '../../src/eval/score-file.ts';

let directory: string;
let files = 0;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tds-scores-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const HEADER: ScoreFileHeader = {
  weights_sha256: 'a',
  profile: 'p',
  mode: 'fast',
  context_tokens: 100,
};

function newPath(): string {
  files += 1;
  return join(directory, `${files}.scores.jsonl`);
}

function entry(digest: string, score: number): ScoreEntry {
  return { digest, variant: 'original', scores: [[score], [1, -2.5]], input_tokens: 7, latency_ms: 1.25 };
}

/** A file with two entries, closed. */
function written(path: string): void {
  const file = ScoreFile.open(path, HEADER);
  file.add(entry('x', 0.1));
  file.add({ ...entry('x', 0.2), variant: 'text_added' });
  file.close();
}

describe('scores on disk', () => {
  test('are all there when the file is opened again', () => {
    const path = newPath();
    written(path);
    const file = ScoreFile.open(path, HEADER);
    expect(file.get('x', 'original')).toEqual(entry('x', 0.1));
    expect(file.get('x', 'text_added')?.scores).toEqual([[0.2], [1, -2.5]]);
    expect(file.get('x', 'option_added')).toBeUndefined();
    file.close();
  });

  test('survive a process that died while it wrote, wherever it was', async () => {
    const path = newPath();
    written(path);
    const whole = await readFile(path);
    const first_line = whole.indexOf('\n') + 1;
    for (let length = 0; length <= whole.length; length += 9) {
      await writeFile(path, whole);
      await truncate(path, length);
      const file = ScoreFile.open(path, HEADER);
      file.add(entry('y', 0.3));
      file.close();
      const again = ScoreFile.open(path, HEADER);
      expect(again.get('y', 'original')).toEqual(entry('y', 0.3));
      // Lines before the cut are still there.
      const kept = whole.subarray(first_line, Math.max(first_line, length)).toString().split('\n').length - 1;
      const found = [again.get('x', 'original'), again.get('x', 'text_added')].filter(Boolean).length;
      expect(found).toBe(kept);
      again.close();
    }
  });

  test.each([
    ['other weights', { weights_sha256: 'b' }],
    ['another profile', { profile: 'q' }],
    ['another mode', { mode: 'consistent' }],
    ['another context', { context_tokens: 99 }],
  ] as const)('of %s are refused and stay as they are', async (_, change) => {
    const path = newPath();
    written(path);
    const before = await readFile(path, 'utf8');
    expect(() => ScoreFile.open(path, { ...HEADER, ...change })).toThrow(ScoreFileError);
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  test('a file of something else is refused and stays as it is', async () => {
    const path = newPath();
    written(path);
    await appendFile(path, '{"digest":"x"}\n');
    expect(() => ScoreFile.open(path, HEADER)).toThrow(ScoreFileError);
    await writeFile(path, 'a letter\nto somebody\n');
    expect(() => ScoreFile.open(path, HEADER)).toThrow(ScoreFileError);
    expect(await readFile(path, 'utf8')).toBe('a letter\nto somebody\n');
  });
});
