import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { chatFrame, clientTokenizer } from '../../../native/plan/chat-frame.ts';
import type { Vocabulary } from '../../../native/plan/vocabulary.ts';
import { CHATML } from '../support/models.ts';
import { tokenizerOf } from './words.ts';

const SPECIAL = ['<s>', '</s>', '<|im_start|>', '<|im_end|>', '<think>', '</think>', '<|im_start|>x'];
const FIRST_TEXT_TOKEN = 100;
/** Every character is a token of its own, after the special ones. */
function characterTokens(text: string): readonly number[] {
  return Array.from(text, (character) => FIRST_TEXT_TOKEN + (character.codePointAt(0) ?? 0));
}
const CHARACTERS = tokenizerOf(characterTokens);

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

async function frameOf(
  template: string | undefined,
  begins_with_bos = false,
): Promise<readonly [string, string]> {
  const { head, tail } = await chatFrame(template, vocabulary(begins_with_bos), CHARACTERS);
  return [shown(head), shown(tail)];
}

describe('what stands around a message', () => {
  test('is the template, with its special tokens as tokens', async () => {
    expect(await frameOf(CHATML)).toEqual([
      '[[<|im_start|>]]user\n',
      '[[<|im_end|>]]\n[[<|im_start|>]]assistant\n',
    ]);
  });

  test('begins with the token that the model expects, once', async () => {
    expect((await frameOf(CHATML, true))[0]).toBe('[[<s>]][[<|im_start|>]]user\n');
    expect((await frameOf(`{{ bos_token }}${CHATML}`, true))[0]).toBe('[[<s>]][[<|im_start|>]]user\n');
  });

  test('takes the longest spelling', async () => {
    expect((await frameOf('<|im_start|>x{{ messages[0].content }}'))[0]).toBe('[[<|im_start|>x]]');
  });

  test('ends a thought that the template leaves open', async () => {
    const [, tail] = await frameOf('{{ messages[0].content }}<think>\n');
    expect(tail).toBe('[[<think>]]\n\n[[</think>]]\n\n');
  });

  test('tells the template not to think', async () => {
    const [, tail] = await frameOf(
      '{{ messages[0].content }}{% if enable_thinking %}A{% else %}B{% endif %}',
    );
    expect(tail).toBe('B');
  });

  test('says the same day on every day, so that no answer changes at midnight', async () => {
    const today = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y, %A %Q') }}{% endif %}";
    expect(await frameOf(`${today}{{ messages[0].content }}`)).toEqual(['26 Jul 2024, Friday %Q', '']);
  });

  test.each([
    ['there is no template', undefined],
    ['the template is not one', '{% for %}'],
    ['the template refuses', "{{ raise_exception('no') }}{{ messages[0].content }}"],
    ['the message is left out', 'nothing'],
    ['the message comes twice', '{{ messages[0].content }}{{ messages[0].content }}'],
  ])('is plain when %s', async (_, template) => {
    expect(await frameOf(template)).toEqual(['', '\n']);
    expect(await frameOf(template, true)).toEqual(['[[<s>]]', '\n']);
  });
});

test('a tokenizer that matches the special tokens of the frame is kept from doing so, and loses no text', async () => {
  // As llama.cpp does with tokens that are listed as the maker's own.
  const matched = ['<|im_start|>', '<|im_end|>'];
  const matching = tokenizerOf((text) =>
    text
      .split(/(<\|im_start\|>|<\|im_end\|>)/)
      .flatMap((part) => (matched.includes(part) ? [SPECIAL.indexOf(part)] : [...characterTokens(part)])),
  );
  const frame = await chatFrame(CHATML, vocabulary(false), CHARACTERS);
  const client = await clientTokenizer(frame, vocabulary(false), matching);
  const spelling = fc.constantFrom(...SPECIAL, '<', '|im_start|>', '😀');
  const text = fc
    .array(fc.oneof(spelling, fc.string({ unit: 'grapheme', maxLength: 5 })))
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(text), async (written) => {
      const tokens = await client.tokenize(written);
      expect(tokens.flat().every((id) => id >= FIRST_TEXT_TOKEN)).toBe(true);
      expect(tokens.map(shown)).toEqual(written);
    }),
    { numRuns: 500 },
  );
  expect(await clientTokenizer(frame, vocabulary(false), CHARACTERS)).toBe(CHARACTERS);
});
