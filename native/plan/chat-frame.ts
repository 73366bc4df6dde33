import { Template } from '@huggingface/jinja';
import type { Tokenizer } from './profile.ts';
import type { Vocabulary } from './vocabulary.ts';

/** The tokens around a user's message: before it, and after it up to the model's answer. */
export interface ChatFrame {
  readonly head: readonly number[];
  readonly tail: readonly number[];
  /** False if the model has no template that can be rendered for one user message. */
  readonly has_template: boolean;
}

/** Stands for the user's message while a template is rendered; no template contains it. */
const PLACEHOLDER = '{the-message-goes-here}';
/** The end of a template that leaves the model thinking. An answer needs a closed thought. */
const OPEN_THOUGHT = /<think>\s*$/;
/**
 * The day that templates get for today, by the directives of `strftime`: the one that Llama 3's take without a clock.
 * The true day would change a model's answers every midnight, and make those of two nodes differ.
 */
const TODAY: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '%a': 'Fri',
    '%A': 'Friday',
    '%b': 'Jul',
    '%B': 'July',
    '%d': '26',
    '%H': '00',
    '%I': '12',
    '%m': '07',
    '%M': '00',
    '%p': 'AM',
    '%S': '00',
    '%y': '24',
    '%Y': '2024',
    '%%': '%',
  }),
);
/** Goes before a template, because the library lets no value take the place of its own functions. */
const SAME_DAY = '{% set strftime_now = same_day %}\n';

function formatToday(format: string): string {
  return format.replace(/%./g, (directive) => TODAY.get(directive) ?? directive);
}

/** Returns the text around one user message, or undefined if the template cannot be used. */
function renderAround(
  template: string,
  vocabulary: Vocabulary,
): { readonly before: string; readonly after: string } | undefined {
  const textOf = (id: number | undefined) => (id === undefined ? '' : (vocabulary.texts[id] ?? ''));
  let rendered: string;
  try {
    rendered = new Template(SAME_DAY + template).render({
      messages: [{ role: 'user', content: PLACEHOLDER }],
      add_generation_prompt: true,
      enable_thinking: false,
      bos_token: textOf(vocabulary.bos),
      eos_token: textOf(vocabulary.eos),
      same_day: formatToday,
    });
  } catch {
    // A template that cannot be rendered counts as a missing one.
    return undefined;
  }
  const [before, after, ...more] = rendered.split(PLACEHOLDER);
  if (before === undefined || after === undefined || more.length > 0) return undefined;
  return { before, after: OPEN_THOUGHT.test(after) ? `${after.trimEnd()}\n\n</think>\n\n` : after };
}

/** Tokenizes a template's text: spellings of special tokens become those tokens, the rest is text. */
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
 * Resolves with the tokens around a user's message by the model's chat template. If no template can be rendered for one
 * user message, the frame is line breaks.
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
  return { head: lacks_bos ? [bos, ...head] : head, tail, has_template: around !== undefined };
}

/**
 * Returns a tokenizer for client text that cannot give the frame's special tokens. Special tokens are off for text. But
 * some files list their template's tokens as user-defined, which llama.cpp matches in any text, so their spellings are
 * split.
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

/** Splits `text` inside every spelling, after its first character, so that no piece contains one. */
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
