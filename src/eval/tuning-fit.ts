import { createHash } from 'node:crypto';
import type { HashKey } from '../hashing/half-siphash.ts';
import { writeJson } from '../json/write-json.ts';
import { type Mode, QUESTION_TYPES, type Question, scoreCount } from '../questions/question.ts';
import type { TypeTemperatures } from '../questions/temperatures.ts';
import { VECTOR_CLASSES_MAX, VECTOR_LABELS_MIN } from '../tuning/choose-correction.ts';
import { partsOf } from '../tuning/correction.ts';
import {
  fitsOf,
  LABELS_MIN,
  type LabelledAnswer,
  type LabelledQuestionSet,
  labelledQuestions,
  type TunedQuestion,
  tuneQuestions,
} from '../tuning/fit-corrections.ts';
import { identityOf } from '../tuning/question-identity.ts';
import { entriesOf, temperatureOf } from '../tuning/tuning-entries.ts';
import type { TuningEntry } from '../tuning/tuning-file.ts';
import type { EvalCase } from './cases.ts';
import { type Random, shuffled } from './random.ts';
import { number, type Table } from './report-text.ts';
import type { ScoreFile } from './score-file.ts';
import { readStates } from './stored-states.ts';

/** The labels of the cases in one mode, by question. */
export interface ModeLabels {
  readonly mode: Mode;
  readonly temperatures: TypeTemperatures | undefined;
  readonly sets: readonly LabelledQuestionSet[];
}

/** The results of tuning in one mode. */
export interface ModeTuning extends Omit<ModeLabels, 'sets'> {
  readonly questions: readonly TunedQuestion[];
}

/** Returns a key for hashed words, which depends only on the cases and the seed. */
export function hashKeyOf(cases_sha256: string, seed: number): HashKey {
  const digest = createHash('sha256').update(`tds-tuning ${cases_sha256} ${seed}`).digest();
  return [digest.readInt32LE(0), digest.readInt32LE(4)];
}

/**
 * Returns the labels of the cases whose scores the file has, with the model's answers, calibrated if
 * possible.
 */
export function modeLabels(
  cases: readonly EvalCase[],
  file: ScoreFile,
  { mode, temperatures, hash_key }: Omit<ModeLabels, 'sets'> & { readonly hash_key: HashKey },
): ModeLabels {
  const answers = cases.flatMap((subject): LabelledAnswer[] => {
    const entry = file.get(subject.digest, 'original');
    const scores = entry?.scores;
    if (!scores) return [];
    const { state, record } = subject;
    return subject.questions.map(({ question, answer, target }, index) => {
      const temperature = temperatureOf(question, temperatures);
      const own = (scores[index] ?? []).map((score) => score / temperature);
      const stored = entry.states?.[index] ?? null;
      const states = stored === null ? null : readStates(stored, scoreCount(question));
      return { question, record, state, scores: own, states, answer, target };
    });
  });
  return { mode, temperatures, sets: labelledQuestions(answers, hash_key) };
}

/** Returns true for each question that has enough labels for a vector, and few enough options. */
export function vectorCandidates(cases: readonly EvalCase[]): (question: Question) => boolean {
  const labels = new Map<string, number>();
  for (const { question } of cases.flatMap((subject) => subject.questions)) {
    const { key } = identityOf(question);
    labels.set(key, (labels.get(key) ?? 0) + 1);
  }
  return (question) => {
    const { key, classes } = identityOf(question);
    return classes.length <= VECTOR_CLASSES_MAX && (labels.get(key) ?? 0) >= VECTOR_LABELS_MIN;
  };
}

/** Returns the most fits of `tuneModes`. */
export function fitCount(modes: readonly ModeLabels[]): number {
  return modes.reduce((sum, { sets }) => sum + fitsOf(sets), 0);
}

/** Tunes every question of every mode, in an order drawn by the seed. Rejects as `onFit` does. */
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

/** Returns the worthwhile corrections, for uncalibrated scores. */
export function tuningEntries(modes: readonly ModeTuning[]): readonly TuningEntry[] {
  return modes.flatMap(({ mode, temperatures, questions }) => entriesOf(questions, mode, temperatures));
}

/** The most characters of a question beside its numbers. */
const QUESTION_CHARACTERS = 48;

/** Returns every question with its labels and the effect of its correction, measured out of fold. */
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
      const parts = correction === null ? 'none: no gain' : partsOf(correction).join(', ');
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

/** Returns the number of records with more than one answer to a question, over all questions. */
export function conflictCount(modes: readonly ModeTuning[]): number {
  const [first] = modes;
  return first?.questions.reduce((sum, { conflicts }) => sum + conflicts, 0) ?? 0;
}
