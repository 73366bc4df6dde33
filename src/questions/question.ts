import type { JsonValue } from '../json/json-value.ts';

/** The two ways of reading a record (spec, "Modes"). */
export type Mode = 'fast' | 'consistent';

/** A yes/no question. `yes` and `no` describe what each answer means; undefined where the client said nothing. */
export interface NoulQuestion {
  readonly type: 'noul';
  readonly instructions: JsonValue | undefined;
  readonly yes: JsonValue | undefined;
  readonly no: JsonValue | undefined;
}

/** Exactly one of several options, in the client's order. */
export interface ChoiceQuestion {
  readonly type: 'choice';
  readonly instructions: JsonValue | undefined;
  readonly options: readonly { readonly id: string; readonly description: JsonValue }[];
}

/** A level on an ordered scale, lowest first. */
export interface ScoreQuestion {
  readonly type: 'score';
  readonly instructions: JsonValue | undefined;
  readonly levels: readonly JsonValue[];
}

/** A typed question as the engine understands it; ids and thresholds stay with the caller. */
export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** How many scores a question yields: one for a noul, one for each option or level otherwise. */
export function scoreCount(question: Question): number {
  switch (question.type) {
    case 'noul':
      return 1;
    case 'choice':
      return question.options.length;
    case 'score':
      return question.levels.length;
  }
}
