import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { ROOT } from './source-files.ts';

/** A longer sentence has to be read twice. */
const WORDS_MAX = 25;

/** A comment that begins its line; lines of `//` that follow each other are one. */
const COMMENT = /^[ \t]*(?:\/\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*)/gm;
const MARKS = /^[ \t]*(?:\/\*+|\*\/|\*(?!\/)|\/\/)[ \t]?|[ \t]*\*\/$/gm;
/** A full stop, an empty line, or the next item of a list. */
const SENTENCE_END = /[.!?][)"'`]*\s+|\n\s*\n|\n\s*(?=- )/;

/** The sentences of comments that have too many words, with their first words. */
function longSentences(source: string): readonly string[] {
  return [...source.matchAll(COMMENT)]
    .flatMap(([comment]) => comment.replace(MARKS, '').split(SENTENCE_END))
    .map((sentence) => sentence.split(/\s+/).filter((word) => /\w/.test(word)))
    .filter((words) => words.length > WORDS_MAX)
    .map((words) => `${words.length} words: ${words.slice(0, 6).join(' ')} …`);
}

test('the reader of comments counts the words of each sentence, over lines, and none of code', () => {
  const words = (count: number) => Array.from({ length: count }, (_, number) => `w${number}`).join(' ');
  const found = '26 words: w0 w1 w2 w3 w4 w5 …';
  const broken = words(26).replace(' w9 ', '\n * w9 ');
  expect(longSentences(`/** ${words(25)}. ${words(25)}. */`)).toEqual([]);
  expect(longSentences(`/**\n * ${words(9)}. ${broken}\n */`)).toEqual([found]);
  expect(longSentences(`  // ${words(13)}\n  // ${words(13)}`)).toHaveLength(1);
  expect(longSentences(`// ${words(13)}\ncall();\n// ${words(13)}`)).toEqual([]);
  expect(longSentences(`/**\n * - ${words(25)}\n * - ${words(25)}\n *\n * ${words(25)}\n */`)).toEqual([]);
  expect(longSentences(`const text = '${words(26)}';`)).toEqual([]);
});

test('no sentence of a comment has more than 25 words', async () => {
  const found: string[] = [];
  for await (const path of new Bun.Glob('{src,db,native}/**/*.{ts,tsx}').scan(ROOT)) {
    const source = await Bun.file(join(ROOT, path)).text();
    found.push(...longSentences(source).map((sentence) => `${path}: ${sentence}`));
  }
  expect(found.sort()).toEqual([]);
});
