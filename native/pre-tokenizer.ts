import { PlanRejected } from './errors.ts';

/** The rule by which llama.cpp splits text for a vocabulary: GGUF's `tokenizer.ggml.model` and `tokenizer.ggml.pre`. */
export interface PreTokenizer {
  readonly model: string;
  readonly pre: string | undefined;
}

/** Throws `PlanRejected` for a text that the tokenizer cannot process. */
export type TextCheck = (text: string) => void;

/** Vocabularies whose text llama.cpp splits without a regular expression. */
const MODELS_WITHOUT_PATTERNS: ReadonlySet<string> = new Set([
  'llama',
  'bert',
  't5',
  'rwkv',
  'plamo2',
  'gemma4',
]);

/** Pre-tokenizers with their own loops in llama.cpp, or with patterns without repetition. */
const WITHOUT_RECURSION: ReadonlySet<string> = new Set(
  `a.x-4.0 chatglm-bpe codeshell command-r dbrx deepseek-r1-qwen exaone exaone4 f2llmv2 falcon-h1 falcon3 gemma4 gigachat
  glm4 gpt-2 granite-docling granite-embed-multi-311m grok-2 hunyuan jais jina-de jina-es jina-v1-en jina-v2-code
  jina-v2-de jina-v2-es jina-v5-nano kimi-k2 kormo laguna lfm2 llama-bpe llama-v3 llama3 megrez mellum mellum2 midm-2.0
  minerva-7b modern-bert mpt olmo phi-2 pixtral qwen2 qwen35 refact roberta-bpe sarvam-moe smaug-bpe smollm solar-open
  stablelm2 starcoder trillion`.split(/\s+/),
);

/** The characters of a pattern's words. A word ends before a character of another kind. */
type WordKind = 'one_class' | 'letters_and_spaces' | 'no_spaces';

/** Pre-tokenizers whose patterns repeat one class of characters at a time: letters, digits, spaces, or all others. */
const ONE_CLASS: ReadonlySet<string> = new Set(
  `afmoe bailingmoe bailingmoe2 chameleon cohere2moe deepseek-coder deepseek-llm deepseek-v3 default falcon gpt-4o
  granite-embed-multi-97m hunyuan-dense hy_v4 jais-2 joyai-llm kanana2 llada-moe llama4 minicpm5 minimax-m2 seed-coder
  spark2_5 superbpe talkie tekken tiny_aya ufakzeka youtu`.split(/\s+/),
);

/**
 * The longest word that `std::regex` may recurse over on the main thread. It takes 353 bytes of stack a character over
 * two words at most: less than half of Linux's 8 MB.
 */
export const WORD_CHARACTERS_MAX = 5000;

/** A run of characters for which a pattern needs quadratic time. */
interface SlowRun {
  readonly name: string;
  readonly characters: ReadonlySet<string>;
  /** The longest accepted run, which takes milliseconds. */
  readonly most: number;
}

/** llama.cpp's white space beyond ASCII. */
const WIDE_SPACES =
  '\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000';
const SPACES: ReadonlySet<string> = new Set(`\t\v\f ${WIDE_SPACES}`);

const SLOW_RUNS: ReadonlyMap<string, SlowRun> = new Map([
  ['deepseek-llm', { name: 'spaces', characters: SPACES, most: 256 }],
  ['jais-2', { name: 'spaces', characters: SPACES, most: 8192 }],
  ['superbpe', { name: 'digits', characters: new Set('0123456789'), most: 256 }],
]);

/**
 * Returns true if llama.cpp's tokenizer ends the process on some texts, because it asserts that no two spaces are
 * adjacent.
 */
export function abortsOnText({ model, pre }: PreTokenizer): boolean {
  return model === 'whitespace' || pre === 'whitespace';
}

/** Returns the check that refuses texts which would take minutes, because a pattern's time is quadratic in a run. */
export function rejectSlowRuns({ pre }: PreTokenizer): TextCheck {
  const slow = SLOW_RUNS.get(pre ?? '');
  if (slow === undefined) return () => {};
  return (text) => {
    let run = 0;
    for (let at = 0; at < text.length; at += 1) {
      run = slow.characters.has(text.charAt(at)) ? run + 1 : 0;
      if (run > slow.most) throw tooLong(slow.most, slow.name);
    }
  };
}

/**
 * Returns the check that refuses texts on which a pattern would overflow the stack of the main thread, where
 * node-llama-cpp tokenizes. It refuses nothing if llama.cpp splits text without recursion.
 */
export function rejectDeepRecursion({ model, pre = 'default' }: PreTokenizer): TextCheck {
  if (MODELS_WITHOUT_PATTERNS.has(model) || WITHOUT_RECURSION.has(pre)) return () => {};
  const kind: WordKind =
    pre === 'exaone-moe' ? 'letters_and_spaces' : ONE_CLASS.has(pre) ? 'one_class' : 'no_spaces';
  const classes = classesOf(kind);
  return (text) => {
    if (text.length > WORD_CHARACTERS_MAX && longestWord(text, classes) > WORD_CHARACTERS_MAX) {
      throw tooLong(WORD_CHARACTERS_MAX, 'characters without a space or another kind of character');
    }
  };
}

function tooLong(most: number, what: string): PlanRejected {
  return new PlanRejected(
    `A text has a run of more than ${most} ${what}, which this model cannot read.`,
    null,
  );
}

/** Classes of characters. A word has characters of one class, and those of `ANY_WORD`. */
const [ANY_WORD, SPACE, DIGIT, LETTER, OTHER] = [0, 1, 2, 3, 4];

/** Stops and commas of Chinese and Japanese, which are punctuation in every edition of Unicode. */
const WIDE_PUNCTUATION = '、。！，：；？';
/** The characters that end a word of letters, digits and signs. */
const WORD_ENDS = '(|.,!?)…。，、';
/** Chinese, Japanese and Korean characters that are letters in every edition of Unicode. */
const WIDE_LETTERS: readonly (readonly [first: number, last: number])[] = [
  [0x3041, 0x3094],
  [0x30a1, 0x30fa],
  [0x4e00, 0x9fa5],
  [0xac00, 0xd7a3],
];

/**
 * Returns the class of every UTF-16 code unit. Most beyond ASCII may be in a word of any class, because llama.cpp's
 * table has another edition of Unicode.
 */
function classesOf(kind: WordKind): Uint8Array {
  const classes = new Uint8Array(0x10000).fill(ANY_WORD);
  const set = (characters: string, of: number) => {
    for (const character of characters) classes[character.charCodeAt(0)] = of;
  };
  for (const [first, last] of WIDE_LETTERS) classes.fill(LETTER, first, last + 1);
  classes.fill(kind === 'no_spaces' ? LETTER : OTHER, 0, 128);
  if (kind !== 'no_spaces') {
    set('0123456789', DIGIT);
    set('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', LETTER);
  }
  set(kind === 'no_spaces' ? WORD_ENDS : WIDE_PUNCTUATION, OTHER);
  set(`\t\n\v\f\r ${WIDE_SPACES}`, SPACE);
  if (kind === 'letters_and_spaces') set(' ', LETTER);
  return classes;
}

/** Returns the length of a text's longest possible word, in UTF-16 code units. */
function longestWord(text: string, classes: Uint8Array): number {
  let longest = 0;
  let start = 0;
  let word_class = ANY_WORD;
  // The start of characters of any class that may begin a word of the next class.
  let joined = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character_class = classes[text.charCodeAt(at)] ?? ANY_WORD;
    if ((character_class === SPACE) !== (word_class === SPACE)) {
      start = at;
      word_class = character_class;
      joined = character_class === ANY_WORD ? at : at + 1;
    } else if (character_class !== ANY_WORD) {
      if (word_class !== ANY_WORD && character_class !== word_class) start = joined;
      word_class = character_class;
      joined = at + 1;
    }
    longest = Math.max(longest, at + 1 - start);
  }
  return longest;
}
