import type { Random } from '../../src/eval/random.ts';
import { shuffled } from '../../src/eval/random.ts';
import type { ChoiceQuestion } from '../../src/questions/choice.ts';
import { softmax } from '../../src/questions/probabilities.ts';
import type { LabelledAnswer } from '../../src/tuning/fit-corrections.ts';
import { VECTOR_SIZE } from '../../src/tuning/vector-part.ts';

/** A choice between options of these ids. */
export function choiceOf(ids: readonly string[]): ChoiceQuestion {
  return {
    type: 'choice',
    instructions: 'Which topic?',
    options: ids.map((id) => ({ id, description: `about ${id}` })),
  };
}

/** A class drawn by probabilities. */
function drawnClass(probabilities: readonly number[], random: Random): number {
  let left = random();
  const found = probabilities.findIndex((probability) => {
    left -= probability;
    return left < 0;
  });
  return Math.max(0, found);
}

export interface SyntheticOptions {
  readonly count: number;
  readonly random: Random;
  /** The offset of each class's score before the answer is drawn. */
  readonly shift?: readonly number[];
  /** The weight of one word of the record for the class of that number; 0 for records without information. */
  readonly word_weight?: number;
  /** The weight of a hidden state for the class that it points to; none without hidden states. */
  readonly state_weight?: number;
}

/** A hidden state whose first number is as large as all others together. */
function randomState(random: Random): number[] {
  const others = Array.from({ length: VECTOR_SIZE - 1 }, () => (random() - 0.5) / Math.sqrt(VECTOR_SIZE));
  return [random() - 0.5, ...others];
}

export const TOPICS = ['cars', 'food', 'music'] as const;
const FILLERS = ['the', 'a', 'new', 'old', 'today', 'said', 'very', 'many', 'seen', 'again'];

/** Answers that are drawn from the model's scores, corrected in a way that is known. */
export function syntheticAnswers(options: SyntheticOptions): LabelledAnswer[] {
  const { count, random, shift = [0, 0, 0], word_weight = 0, state_weight } = options;
  return Array.from({ length: count }, (_, number) => {
    const topic = Math.floor(random() * TOPICS.length);
    const words = Array.from({ length: 6 }, () => FILLERS[Math.floor(random() * FILLERS.length)] ?? '');
    const scores = TOPICS.map(() => 3 * (random() - 0.5));
    const states = state_weight === undefined ? null : TOPICS.map(() => randomState(random));
    const corrected = scores.map(
      (score, at) =>
        score +
        (shift[at] ?? 0) +
        (at === topic ? word_weight : 0) +
        (state_weight ?? 0) * (states?.[at]?.[0] ?? 0),
    );
    const answer = drawnClass(softmax(corrected), random);
    return {
      question: choiceOf(TOPICS),
      record: `record ${number}`,
      state: shuffled([...words, `word${topic}`], random).join(' '),
      scores,
      states,
      answer,
      target: TOPICS.map((_topic, at) => Number(at === answer)),
    };
  });
}
