import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { ROOT } from './source-files.ts';

/** A longer sentence has to be read twice. */
const WORDS_MAX = 25;

/** Openers that put the subject last, or hide it. */
const OPENER = /^(?:What|Whether|Whoever)\b/;

/** Folders in which no comment begins with one of these openers. */
const FOLDERS_WITHOUT_OPENERS = ['bench', 'db', 'native', 'src', 'test'];

/** A comment that begins its line; lines of `//` that follow each other are one. */
const COMMENT = /^[ \t]*(?:\/\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*)/gm;
const PYTHON_COMMENT = /^[ \t]*(?:"""[\s\S]*?"""|#.*(?:\n[ \t]*#.*)*)/gm;
const MARKS = /^[ \t]*(?:\/\*+|\*\/|\*(?!\/)|\/\/|#+|""")[ \t]?|[ \t]*(?:\*\/|""")$/gm;
/** A full stop, an empty line, or the next item of a list. */
const SENTENCE_END = /[.!?][)"'`]*\s+|\n\s*\n|\n\s*(?=- )/;

/** The comments of a source, without their marks. */
function commentsIn(source: string, comment = COMMENT): readonly string[] {
  return [...source.matchAll(comment)].map(([text]) => text.replace(MARKS, '').trim());
}

/** The first words of comments that begin with an opener of the list. */
function openers(source: string, comment = COMMENT): readonly string[] {
  return commentsIn(source, comment)
    .filter((text) => OPENER.test(text))
    .map((text) => `${text.split(/\s+/).slice(0, 6).join(' ')} …`);
}

/** The sentences of comments that have too many words, with their first words. */
function longSentences(source: string): readonly string[] {
  return commentsIn(source)
    .flatMap((comment) => comment.split(SENTENCE_END))
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

test('the reader of comments finds the openers of comments, and of no code or later sentence', () => {
  expect(openers('/** What a backup is named. */')).toEqual(['What a backup is named. …']);
  expect(openers('/**\n * Whether it runs.\n */')).toEqual(['Whether it runs. …']);
  expect(openers("  // Whoever asks next\n  // waits.\nconst name = 'What';")).toEqual([
    'Whoever asks next waits. …',
  ]);
  expect(openers('/** The name of a backup. What else? */\n// Whatever')).toEqual([]);
  expect(openers('"""What it is."""\n# Whether it is', PYTHON_COMMENT)).toHaveLength(2);
});

test('no comment begins with What, Whether or Whoever', async () => {
  const found: string[] = [];
  for await (const path of new Bun.Glob(`{${FOLDERS_WITHOUT_OPENERS.join(',')}}/**/*`).scan(ROOT)) {
    if (!/\.(?:tsx?|[ch]pp|py)$/.test(path) || path.includes('/.venv/')) continue;
    const source = await Bun.file(join(ROOT, path)).text();
    const comments = openers(source, path.endsWith('.py') ? PYTHON_COMMENT : COMMENT);
    found.push(...comments.map((comment) => `${path}: ${comment}`));
  }
  expect(found.sort()).toEqual([]);
});
