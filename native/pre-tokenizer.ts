import { PlanRejected } from './plan/profile.ts';

/** How llama.cpp splits text into words for a vocabulary: GGUF's `tokenizer.ggml.model` and `tokenizer.ggml.pre`. */
export interface PreTokenizer {
  readonly model: string;
  readonly pre: string | undefined;
}

/** Throws `PlanRejected` for a text that the tokenizer cannot take. */
export type TextCheck = (text: string) => void;

/** Vocabularies whose text llama.cpp splits by no regular expression. */
const MODELS_WITHOUT_PATTERNS: ReadonlySet<string> = new Set([
  'llama',
  'bert',
  't5',
  'rwkv',
  'plamo2',
  'gemma4',
]);

/** Pre-tokenizers that llama.cpp has loops of its own for, or patterns that repeat nothing. */
const WITHOUT_RECURSION: ReadonlySet<string> = new Set(
  `a.x-4.0 chatglm-bpe codeshell command-r dbrx deepseek-r1-qwen exaone exaone4 f2llmv2 falcon-h1 falcon3 gemma4 gigachat
  glm4 gpt-2 granite-docling granite-embed-multi-311m grok-2 hunyuan jais jina-de jina-es jina-v1-en jina-v2-code
  jina-v2-de jina-v2-es jina-v5-nano kimi-k2 kormo laguna lfm2 llama-bpe llama-v3 llama3 megrez mellum mellum2 midm-2.0
  minerva-7b modern-bert mpt olmo phi-2 pixtral qwen2 qwen35 refact roberta-bpe sarvam-moe smaug-bpe smollm solar-open
  stablelm2 starcoder trillion`.split(/\s+/),
);

/** What the words of a pattern's repeat are made of; a word ends where a character of another kind follows. */
type WordKind = 'one_class' | 'letters_and_spaces' | 'no_spaces';

/** Pre-tokenizers whose patterns repeat one class of characters at a time: letters, digits, spaces, or all others. */
const ONE_CLASS: ReadonlySet<string> = new Set(
  `afmoe bailingmoe bailingmoe2 chameleon cohere2moe deepseek-coder deepseek-llm deepseek-v3 default falcon gpt-4o
  granite-embed-multi-97m hunyuan-dense hy_v4 jais-2 joyai-llm kanana2 llada-moe llama4 minicpm5 minimax-m2 seed-coder
  spark2_5 superbpe talkie tekken tiny_aya ufakzeka youtu`.split(/\s+/),
);

/**
 * Characters of one word that `std::regex` may recurse over on the main thread. It takes 353 bytes of the stack a
 * character, over two words at most: less than half of the 8 MB that Linux gives.
 */
export const WORD_CHARACTERS_MAX = 5000;

/** A run of characters that a pattern reads again from many places in it: twice the run takes four times as long. */
interface SlowRun {
  readonly name: string;
  readonly characters: ReadonlySet<string>;
  /** Of one run; so many take milliseconds. */
  readonly most: number;
}

const SPACES: ReadonlySet<string> = new Set(
  '\t\v\f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

const SLOW_RUNS: ReadonlyMap<string, SlowRun> = new Map([
  ['deepseek-llm', { name: 'spaces', characters: SPACES, most: 256 }],
  ['jais-2', { name: 'spaces', characters: SPACES, most: 8192 }],
  ['superbpe', { name: 'digits', characters: new Set('0123456789'), most: 256 }],
]);

/** Whether llama.cpp's tokenizer ends the process on some texts: it asserts that no two spaces follow each other. */
export function abortsOnText({ model, pre }: PreTokenizer): boolean {
  return model === 'whitespace' || pre === 'whitespace';
}

/** Refuses texts that would keep any thread busy for minutes, because a pattern's time grows with a run's square. */
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
 * Refuses texts over which a tokenizer's patterns would overflow the stack of the main thread, which is where
 * node-llama-cpp tokenizes. Nothing is refused where llama.cpp splits text without recursion.
 */
export function rejectDeepRecursion({ model, pre = 'default' }: PreTokenizer): TextCheck {
  if (MODELS_WITHOUT_PATTERNS.has(model) || WITHOUT_RECURSION.has(pre)) return () => {};
  const kind: WordKind =
    pre === 'exaone-moe' ? 'letters_and_spaces' : ONE_CLASS.has(pre) ? 'one_class' : 'no_spaces';
  const classes = asciiClasses(kind);
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

/** The class of every ASCII character; characters of one class may be in one word. */
function asciiClasses(kind: WordKind): readonly number[] {
  const [space, digit, letter, other] = [1, 2, 3, 4];
  return Array.from({ length: 128 }, (_, code) => {
    const character = String.fromCharCode(code);
    if (/\s/.test(character)) return kind === 'letters_and_spaces' && character === ' ' ? letter : space;
    if (kind === 'no_spaces' || /[a-z]/i.test(character)) return letter;
    return /[0-9]/.test(character) ? digit : other;
  });
}

/** Stops and commas of Chinese and Japanese, which are punctuation in every edition of Unicode. */
const WIDE_PUNCTUATION: ReadonlySet<string> = new Set('、。！，：；？');

/**
 * UTF-16 code units of the longest word that a text can have. A character beyond ASCII may be in a word of any class,
 * because llama.cpp's table of them is another edition than ours.
 */
function longestWord(text: string, classes: readonly number[]): number {
  let longest = 0;
  let start = 0;
  let word_class = 0;
  // Where characters of any class began that a word of the next class may start with.
  let joined = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const character_class =
      code < 128 ? (classes[code] ?? 0) : WIDE_PUNCTUATION.has(text.charAt(at)) ? (classes[33] ?? 0) : 0;
    if (character_class !== 0) {
      if (word_class !== 0 && character_class !== word_class) start = joined;
      word_class = character_class;
      joined = at + 1;
    }
    longest = Math.max(longest, at + 1 - start);
  }
  return longest;
}
