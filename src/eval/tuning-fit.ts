import { createHash } from 'node:crypto';
import { type TypeTemperatures, temperatureFor } from '../../native/engine.ts';
import type { HashKey } from '../hashing/half-siphash.ts';
import { writeJson } from '../json/write-json.ts';
import { type Mode, QUESTION_TYPES, type Question } from '../questions/question.ts';
import {
  fitsOf,
  LABELS_MIN,
  type LabelledAnswer,
  type LabelledQuestionSet,
  labelledQuestions,
  type TunedQuestion,
  tuneQuestions,
} from '../tuning/tune.ts';
import type { TuningEntry } from '../tuning/tuning-file.ts';
import type { EvalCase } from './cases.ts';
import { type Random, shuffled } from './random.ts';
import type { ScoreFile } from './score-file.ts';
import { number, type Table } from './text.ts';

/** The labels of the cases in one mode, by question. */
export interface ModeLabels {
  readonly mode: Mode;
  readonly temperatures: TypeTemperatures | undefined;
  readonly sets: readonly LabelledQuestionSet[];
}

/** What became of the questions in one mode. */
export interface ModeTuning extends Omit<ModeLabels, 'sets'> {
  readonly questions: readonly TunedQuestion[];
}

/** A key for hashed words that is the same for the same cases and seed, and another one for any others. */
export function hashKeyOf(cases_sha256: string, seed: number): HashKey {
  const digest = createHash('sha256').update(`tds-tuning ${cases_sha256} ${seed}`).digest();
  return [digest.readInt32LE(0), digest.readInt32LE(4)];
}

/** The labels of the cases that the file has scores of, with what the model says calibrated where it is. */
export function modeLabels(
  cases: readonly EvalCase[],
  file: ScoreFile,
  { mode, temperatures, hash_key }: Omit<ModeLabels, 'sets'> & { readonly hash_key: HashKey },
): ModeLabels {
  const answers = cases.flatMap((subject): LabelledAnswer[] => {
    const scores = file.get(subject.digest, 'original')?.scores;
    if (!scores) return [];
    const { state } = subject;
    const record = createHash('sha256').update(writeJson(state)).digest('hex');
    return subject.questions.map(({ question, answer, target }, index) => {
      const temperature = temperatureOf(question, temperatures);
      const own = (scores[index] ?? []).map((score) => score / temperature);
      return { question, record, state, scores: own, answer, target };
    });
  });
  return { mode, temperatures, sets: labelledQuestions(answers, hash_key) };
}

function temperatureOf(question: Question, temperatures: TypeTemperatures | undefined): number {
  return temperatures === undefined ? 1 : temperatureFor(question, temperatures);
}

/** Fits that `tuneModes` makes at most. */
export function fitCount(modes: readonly ModeLabels[]): number {
  return modes.reduce((sum, { sets }) => sum + fitsOf(sets), 0);
}

/** Tunes every question of every mode, in an order that the seed has drawn. Rejects with what `onFit` rejects with. */
export async function tuneModes(
  modes: readonly ModeLabels[],
  { random, onFit }: { readonly random: Random; readonly onFit: () => Promise<void> },
): Promise<readonly ModeTuning[]> {
  const tuned: ModeTuning[] = [];
  for (const { mode, temperatures, sets } of modes) {
    const questions = await tuneQuestions(sets, { order: (indexes) => shuffled(indexes, random), onFit });
    tuned.push({ mode, temperatures, questions });
  }
  return tuned;
}

/** The corrections that are worth it, for scores that are not calibrated. */
export function tuningEntries(modes: readonly ModeTuning[]): readonly TuningEntry[] {
  return modes.flatMap(({ mode, temperatures, questions }) =>
    questions.flatMap(({ question, labels, fitted }): TuningEntry[] => {
      if (typeof fitted === 'string' || fitted.correction === null) return [];
      const { correction, before, after, answer_shares } = fitted;
      return [
        {
          question,
          mode,
          ...correction,
          scale: correction.scale / temperatureOf(question, temperatures),
          labels,
          accuracy: { before: before.accuracy, after: after.accuracy },
          loss: { before: before.loss, after: after.loss },
          answer_shares,
        },
      ];
    }),
  );
}

/** More of a question does not fit beside its numbers. */
const QUESTION_CHARACTERS = 48;

/** Every question with its labels and what a correction does, each answer by one that had no part in it. */
export function tuningTable(modes: readonly ModeTuning[]): Table {
  return [
    [
      'QUESTION',
      'TYPE',
      'MODE',
      'LABELS',
      'ACCURACY BEFORE',
      'AFTER',
      'NLL BEFORE',
      'AFTER',
      'PARTS',
      '100 MORE LABELS',
    ],
    ...modes.flatMap(({ mode, questions }) =>
      questions
        .toSorted((one, other) => typePlace(one) - typePlace(other) || other.labels - one.labels)
        .map((tuned) => [
          shortText(tuned.question),
          tuned.question.type,
          mode,
          String(tuned.labels),
          ...resultCells(tuned),
        ]),
    ),
  ];
}

function typePlace({ question }: TunedQuestion): number {
  return QUESTION_TYPES.indexOf(question.type);
}

function shortText({ instructions = '' }: Question): string {
  const text = typeof instructions === 'string' ? instructions : writeJson(instructions);
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ');
  return line.length <= QUESTION_CHARACTERS ? line : `${line.slice(0, QUESTION_CHARACTERS - 1)}…`;
}

function resultCells({ fitted }: TunedQuestion): readonly string[] {
  switch (fitted) {
    case 'too_few_labels':
      return ['-', '-', '-', '-', `none: fewer than ${LABELS_MIN} labels`, '-'];
    case 'one_class':
      return ['-', '-', '-', '-', 'none: all labels are one answer', '-'];
    default: {
      const { correction, before, after, gain_of_100_labels: gain } = fitted;
      const parts =
        correction === null ? 'none: no gain' : correction.words === null ? 'shift' : 'shift, words';
      return [
        number(before.accuracy),
        number(after.accuracy),
        number(before.loss),
        number(after.loss),
        parts,
        gain === null ? '-' : `+${number(gain)}`,
      ];
    }
  }
}

/** How many records have more than one answer to a question, over all questions. */
export function conflictCount(modes: readonly ModeTuning[]): number {
  const [first] = modes;
  return first?.questions.reduce((sum, { conflicts }) => sum + conflicts, 0) ?? 0;
}
