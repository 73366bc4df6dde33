import { Template } from '@huggingface/jinja';
import type { Tokenizer } from './profile.ts';
import type { Vocabulary } from './vocabulary.ts';

/** What stands around a user's message: tokens before it, and tokens after it up to where the model answers. */
export interface ChatFrame {
  readonly head: readonly number[];
  readonly tail: readonly number[];
}

/** Stands for the user's message while a template is rendered; no template contains it. */
const PLACEHOLDER = '{the-message-goes-here}';
/** A template that leaves the model thinking; an answer needs the thought to be over. */
const OPEN_THOUGHT = /<think>\s*$/;

/** The text around one user message, or undefined when the template cannot be used. */
function renderAround(
  template: string,
  vocabulary: Vocabulary,
): { readonly before: string; readonly after: string } | undefined {
  const textOf = (id: number | undefined) => (id === undefined ? '' : (vocabulary.texts[id] ?? ''));
  let rendered: string;
  try {
    rendered = new Template(template).render({
      messages: [{ role: 'user', content: PLACEHOLDER }],
      add_generation_prompt: true,
      enable_thinking: false,
      bos_token: textOf(vocabulary.bos),
      eos_token: textOf(vocabulary.eos),
    });
  } catch {
    // A template that cannot be rendered is as good as none.
    return undefined;
  }
  const [before, after, ...more] = rendered.split(PLACEHOLDER);
  if (before === undefined || after === undefined || more.length > 0) return undefined;
  return { before, after: OPEN_THOUGHT.test(after) ? `${after.trimEnd()}\n\n</think>\n\n` : after };
}

/** A template's own text as tokens: spellings of special tokens become those tokens, the rest is tokenized as text. */
async function frameTokens(
  frame: string,
  vocabulary: Vocabulary,
  tokenizer: Tokenizer,
): Promise<readonly number[]> {
  const spellings = new Map<string, number>();
  for (const id of vocabulary.special) {
    const spelling = vocabulary.texts[id];
    if (spelling !== undefined && spelling !== '' && frame.includes(spelling)) spellings.set(spelling, id);
  }
  /** Texts, each but the last one with the special token that follows it. */
  const texts: string[] = [];
  const specials: number[] = [];
  let text = '';
  for (let at = 0; at < frame.length; ) {
    const [spelling, id] = longestAt(frame, at, spellings);
    if (id === undefined) {
      text += frame[at];
      at += 1;
      continue;
    }
    texts.push(text);
    specials.push(id);
    text = '';
    at += spelling.length;
  }
  const tokens = await tokenizer.tokenize([...texts, text]);
  return tokens.flatMap((ids, index) => [...ids, ...specials.slice(index, index + 1)]);
}

function longestAt(
  frame: string,
  at: number,
  spellings: ReadonlyMap<string, number>,
): readonly [string, number | undefined] {
  let longest = '';
  for (const spelling of spellings.keys()) {
    if (spelling.length > longest.length && frame.startsWith(spelling, at)) longest = spelling;
  }
  return [longest, spellings.get(longest)];
}

/**
 * The tokens around a user's message by the model's chat template; a plain frame of line breaks where there is no
 * template, or none that can be rendered for a single user message.
 */
export async function chatFrame(
  template: string | undefined,
  vocabulary: Vocabulary,
  tokenizer: Tokenizer,
): Promise<ChatFrame> {
  const around = template === undefined ? undefined : renderAround(template, vocabulary);
  const head = await frameTokens(around?.before ?? '', vocabulary, tokenizer);
  const tail = await frameTokens(around?.after ?? '\n', vocabulary, tokenizer);
  const { bos } = vocabulary;
  const lacks_bos = vocabulary.begins_with_bos && bos !== undefined && head[0] !== bos;
  return { head: lacks_bos ? [bos, ...head] : head, tail };
}

/**
 * A tokenizer for client text that cannot give the frame's special tokens. Special tokens are off for text, but some
 * files list the tokens of their template as ordinary ones of the maker's, which llama.cpp matches in any text: their
 * spellings are taken apart.
 */
export async function clientTokenizer(
  frame: ChatFrame,
  vocabulary: Vocabulary,
  tokenizer: Tokenizer,
): Promise<Tokenizer> {
  const specials = [...new Set([...frame.head, ...frame.tail])].filter((id) => vocabulary.special.has(id));
  const spelled = specials.map((id) => vocabulary.texts[id] ?? '');
  const tokenized = await tokenizer.tokenize(spelled);
  const spellings = spelled.filter((_, index) => tokenized[index]?.includes(specials[index] ?? Number.NaN));
  if (spellings.length === 0) return tokenizer;
  return {
    async tokenize(texts) {
      const pieces = texts.map((text) => splitAt(text, spellings));
      const tokens = await tokenizer.tokenize(pieces.flat());
      let at = 0;
      return pieces.map(({ length }) => {
        const start = at;
        at += length;
        return tokens.slice(start, at).flat();
      });
    },
  };
}

/** `text` cut inside every occurrence of a spelling, after its first character, so that no piece contains one. */
function splitAt(text: string, spellings: readonly string[]): readonly string[] {
  const pieces: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (spellings.some((spelling) => text.startsWith(spelling, at))) {
      const end = at + String.fromCodePoint(text.codePointAt(at) ?? 0).length;
      pieces.push(text.slice(start, end));
      start = end;
    }
  }
  return [...pieces, text.slice(start)];
}
