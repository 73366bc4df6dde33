import type { Tokenizer } from './profile.ts';

/** A text that the model can answer with in one token. */
export interface Label {
  readonly text: string;
  readonly token: number;
}

/** How an answer is asked for, and what can be answered there. */
export interface Labels {
  /** The tokens that the answer follows at once. */
  readonly cue: readonly number[];
  /** Codes in order: A…Z, then two letters; only those that are one token after the cue, at most 255. */
  readonly codes: readonly Label[];
  /** Yes and no in words, or undefined where they are not one token each. */
  readonly yes_no: readonly [yes: Label, no: Label] | undefined;
}

/** As many codes as a question can have options (contract: options of a choice, levels of a score). */
export const CODES_MAX = 255;
const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
const CANDIDATES = [...LETTERS, ...LETTERS.flatMap((first) => LETTERS.map((second) => first + second))];
/** Cues, and what stands between them and a label: vocabularies differ in which words they hold with a space. */
const CUES = [
  ['Answer:', ' '],
  ['Answer: ', ''],
  ['Answer:\n', ''],
] as const;

async function labelsAfter(cue: string, separator: string, tokenizer: Tokenizer): Promise<Labels> {
  const labels = ['Yes', 'No', ...CANDIDATES];
  const [cue_tokens = [], ...answered] = await tokenizer.tokenize([
    cue,
    ...labels.map((text) => cue + separator + text),
  ]);
  const labelOf = (text: string, tokens: readonly number[] = []): Label | undefined => {
    const token = tokens[cue_tokens.length];
    const follows = cue_tokens.every((expected, index) => tokens[index] === expected);
    return token !== undefined && follows && tokens.length === cue_tokens.length + 1
      ? { text, token }
      : undefined;
  };
  const [yes, no, ...candidates] = labels.map((text, index) => labelOf(text, answered[index]));
  const codes = new Map<number, Label>();
  for (const label of candidates) {
    if (label !== undefined && !codes.has(label.token)) codes.set(label.token, label);
    if (codes.size === CODES_MAX) break;
  }
  return {
    cue: cue_tokens,
    codes: [...codes.values()],
    yes_no: yes === undefined || no === undefined || yes.token === no.token ? undefined : [yes, no],
  };
}

/** The first cue after which a vocabulary has as many single-token labels as can be used, or else the most. */
export async function findLabels(tokenizer: Tokenizer): Promise<Labels> {
  let best: Labels = { cue: [], codes: [], yes_no: undefined };
  for (const [cue, separator] of CUES) {
    const labels = await labelsAfter(cue, separator, tokenizer);
    if (labels.codes.length > best.codes.length) best = labels;
    if (best.codes.length === CODES_MAX) break;
  }
  return best;
}
