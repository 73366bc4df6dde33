import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { QUESTION_TYPES } from '../../src/questions/question.ts';
import { ROOT } from './source-files.ts';

test('no comparison with one question type stands for all others: a switch names every type', async () => {
  const comparison = new RegExp(`[!=]==? '(?:${QUESTION_TYPES.join('|')})'`);
  const found: string[] = [];
  for await (const path of new Bun.Glob('{src,native}/**/*.{ts,tsx}').scan(ROOT)) {
    const lines = (await Bun.file(join(ROOT, path)).text()).split('\n');
    lines.forEach((line, index) => {
      if (comparison.test(line)) found.push(`${path}:${index + 1}`);
    });
  }
  expect(found).toEqual([]);
});
