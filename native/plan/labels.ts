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

const MOST_CODES = 255;
const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
const CANDIDATES = [...LETTERS, ...LETTERS.flatMap((first) => LETTERS.map((second) => first + second))];
/** Cues, and what stands between them and a label: vocabularies differ in which words they hold with a space. */
const CUES = [
  ['Answer:', ' '],
  ['Answer: ', ''],
  ['Answer:\n', ''],
] as const;

function labelsAfter(cue: string, separator: string, tokenizer: Tokenizer): Labels {
  const cue_tokens = tokenizer.tokenize(cue);
  const labelOf = (text: string): Label | undefined => {
    const tokens = tokenizer.tokenize(cue + separator + text);
    const token = tokens[cue_tokens.length];
    const follows = cue_tokens.every((expected, index) => tokens[index] === expected);
    return token !== undefined && follows && tokens.length === cue_tokens.length + 1
      ? { text, token }
      : undefined;
  };
  const codes = new Map<number, Label>();
  for (const candidate of CANDIDATES) {
    const label = labelOf(candidate);
    if (label !== undefined && !codes.has(label.token)) codes.set(label.token, label);
    if (codes.size === MOST_CODES) break;
  }
  const yes = labelOf('Yes');
  const no = labelOf('No');
  return {
    cue: cue_tokens,
    codes: [...codes.values()],
    yes_no: yes === undefined || no === undefined || yes.token === no.token ? undefined : [yes, no],
  };
}

/** The first cue after which a vocabulary has as many single-token labels as can be used, or else the most. */
export function findLabels(tokenizer: Tokenizer): Labels {
  let best: Labels = { cue: [], codes: [], yes_no: undefined };
  for (const [cue, separator] of CUES) {
    const labels = labelsAfter(cue, separator, tokenizer);
    if (labels.codes.length > best.codes.length) best = labels;
    if (best.codes.length === MOST_CODES) break;
  }
  return best;
}
