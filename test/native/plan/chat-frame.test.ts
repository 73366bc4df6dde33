import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { chatFrame, clientTokenizer } from '../../../native/plan/chat-frame.ts';
import type { Tokenizer } from '../../../native/plan/profile.ts';
import type { Vocabulary } from '../../../native/plan/vocabulary.ts';
import { CHATML } from '../support/models.ts';
import { batchOf } from './words.ts';

const SPECIAL = ['<s>', '</s>', '<|im_start|>', '<|im_end|>', '<think>', '</think>', '<|im_start|>x'];
const FIRST_TEXT_TOKEN = 100;
/** Every character is a token of its own, after the special ones. */
const CHARACTERS: Tokenizer = tokenizerOf((text) =>
  Array.from(text, (character) => FIRST_TEXT_TOKEN + (character.codePointAt(0) ?? 0)),
);

function tokenizerOf(tokenize: Tokenizer['tokenize']): Tokenizer {
  return { tokenize, ...batchOf(tokenize) };
}

function vocabulary(begins_with_bos: boolean): Vocabulary {
  return {
    texts: SPECIAL,
    special: new Set(SPECIAL.keys()),
    bos: 0,
    eos: 1,
    begins_with_bos,
  };
}

/** Tokens as text, special ones in double brackets. */
function shown(tokens: readonly number[]): string {
  return tokens
    .map((id) => (id < FIRST_TEXT_TOKEN ? `[[${SPECIAL[id]}]]` : String.fromCodePoint(id - FIRST_TEXT_TOKEN)))
    .join('');
}

function frameOf(template: string | undefined, begins_with_bos = false): readonly [string, string] {
  const { head, tail } = chatFrame(template, vocabulary(begins_with_bos), CHARACTERS);
  return [shown(head), shown(tail)];
}

describe('what stands around a message', () => {
  test('is the template, with its special tokens as tokens', () => {
    expect(frameOf(CHATML)).toEqual([
      '[[<|im_start|>]]user\n',
      '[[<|im_end|>]]\n[[<|im_start|>]]assistant\n',
    ]);
  });

  test('begins with the token that the model expects, once', () => {
    expect(frameOf(CHATML, true)[0]).toBe('[[<s>]][[<|im_start|>]]user\n');
    expect(frameOf(`{{ bos_token }}${CHATML}`, true)[0]).toBe('[[<s>]][[<|im_start|>]]user\n');
  });

  test('takes the longest spelling', () => {
    expect(frameOf('<|im_start|>x{{ messages[0].content }}')[0]).toBe('[[<|im_start|>x]]');
  });

  test('ends a thought that the template leaves open', () => {
    const [, tail] = frameOf('{{ messages[0].content }}<think>\n');
    expect(tail).toBe('[[<think>]]\n\n[[</think>]]\n\n');
  });

  test('tells the template not to think', () => {
    const [, tail] = frameOf('{{ messages[0].content }}{% if enable_thinking %}A{% else %}B{% endif %}');
    expect(tail).toBe('B');
  });

  test.each([
    ['there is no template', undefined],
    ['the template is not one', '{% for %}'],
    ['the template refuses', "{{ raise_exception('no') }}{{ messages[0].content }}"],
    ['the message is left out', 'nothing'],
    ['the message comes twice', '{{ messages[0].content }}{{ messages[0].content }}'],
  ])('is plain when %s', (_, template) => {
    expect(frameOf(template)).toEqual(['', '\n']);
    expect(frameOf(template, true)).toEqual(['[[<s>]]', '\n']);
  });
});

test('a tokenizer that matches the special tokens of the frame is kept from doing so, and loses no text', async () => {
  // As llama.cpp does with tokens that are listed as the maker's own.
  const matched = ['<|im_start|>', '<|im_end|>'];
  const matching = tokenizerOf((text) =>
    text
      .split(/(<\|im_start\|>|<\|im_end\|>)/)
      .flatMap((part) => (matched.includes(part) ? [SPECIAL.indexOf(part)] : [...CHARACTERS.tokenize(part)])),
  );
  const frame = chatFrame(CHATML, vocabulary(false), CHARACTERS);
  const client = clientTokenizer(frame, vocabulary(false), matching);
  const spelling = fc.constantFrom(...SPECIAL, '<', '|im_start|>', '😀');
  const text = fc
    .array(fc.oneof(spelling, fc.string({ unit: 'grapheme', maxLength: 5 })))
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(text), async (written) => {
      const tokens = await client.tokenizeAll(written);
      expect(tokens.flat().every((id) => id >= FIRST_TEXT_TOKEN)).toBe(true);
      expect(tokens.map(shown)).toEqual(written);
    }),
    { numRuns: 500 },
  );
  expect(clientTokenizer(frame, vocabulary(false), CHARACTERS)).toBe(CHARACTERS);
});
