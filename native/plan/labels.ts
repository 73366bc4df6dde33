import type { Tokenizer } from './profile.ts';

/** A text that the model can answer in one token. */
export interface Label {
  readonly text: string;
  readonly token: number;
}

/** The cue for an answer, and the labels that can follow. */
export interface Labels {
  /** The tokens right before the answer. */
  readonly cue: readonly number[];
  /** At most 255 codes in order: A…Z, then two letters. Each is one token after the cue. */
  readonly codes: readonly Label[];
  /** The words yes and no, or undefined if they are not one token each. */
  readonly yes_no: readonly [yes: Label, no: Label] | undefined;
}

/** The largest number of a question's options (contract: options of a choice, levels of a score). */
const CODES_MAX = 255;
const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
const CANDIDATES = [...LETTERS, ...LETTERS.flatMap((first) => LETTERS.map((second) => first + second))];
/** Cues, and the text between them and a label. Vocabularies differ in the words that they have with a space. */
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

/** Finds the first cue after which a vocabulary has all usable single-token labels, or else the most. */
export async function findLabels(tokenizer: Tokenizer): Promise<Labels> {
  let best: Labels = { cue: [], codes: [], yes_no: undefined };
  for (const [cue, separator] of CUES) {
    const labels = await labelsAfter(cue, separator, tokenizer);
    if (labels.codes.length > best.codes.length) best = labels;
    if (best.codes.length === CODES_MAX) break;
  }
  return best;
}
