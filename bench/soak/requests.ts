import { TypeCompiler } from '@sinclair/typebox/compiler';
import { inputCost_micros, MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { type DecisionResponse, DecisionResponseSchema } from '../../src/decisions/schemas.ts';
import { FIVE_QUESTIONS } from '../support/five-questions.ts';

type Mode = DecisionResponse['mode'];
type Question =
  | { readonly type: 'noul' }
  | { readonly type: 'choice'; readonly criteria: Readonly<Record<string, string | null>> }
  | { readonly type: 'score'; readonly criteria: readonly string[] };
type Questions = Readonly<Record<string, Question & { readonly instructions: string }>>;

/** A valid request. */
export interface ValidRequest {
  readonly path: '/v1/decisions' | '/v1/systemone';
  readonly mode: Mode;
  readonly questions: Questions;
  readonly body: string;
}

const PRICE = { input_price_micros_per_million_tokens: 500_000 };
const SUM_TOLERANCE = 1e-9;
/** A yes/no answer is never between these (contract: yes/no answers are committed). */
const UNCOMMITTED = { above: 0.199, below: 0.801 };

const { refund, team, urgency } = FIVE_QUESTIONS.questions;
const QUESTION_SETS: readonly Questions[] = [
  { refund },
  { team },
  { urgency },
  { refund, team, urgency },
  FIVE_QUESTIONS.questions,
];
const MODES: readonly Mode[] = ['fast', 'fast', 'consistent'];
const RECORDS = [
  'I was charged twice for order 8812. Please give the second payment back.',
  FIVE_QUESTIONS.state.slice(0, 600),
  FIVE_QUESTIONS.state,
] as const;

/** Returns the valid request of a number, in a cycle of all question types, modes, paths and several lengths. */
export function validRequest(number: number, record_prefix = ''): ValidRequest {
  const questions = QUESTION_SETS[number % QUESTION_SETS.length] ?? {};
  const mode = MODES[number % MODES.length] ?? 'fast';
  const state = record_prefix + (RECORDS[Math.floor(number / 2) % RECORDS.length] ?? '');
  const path = number % 4 === 3 ? '/v1/systemone' : '/v1/decisions';
  return { path, mode, questions, body: JSON.stringify({ model: 'decision-1', state, questions, mode }) };
}

/** The number of different requests. */
export const DIFFERENT_REQUESTS = 60;

const RESPONSE = TypeCompiler.Compile(DecisionResponseSchema);

/** Returns the cost of a 200 in micro-dollars; null for a body that is not a decision. */
export function chargedMicros(body: unknown): number | null {
  return RESPONSE.Check(body) ? Math.round(body.usage.cost_usd * MICROS_PER_DOLLAR) : null;
}

/** Returns the part of an answer that must not change for the same request: all but id, time and latency. */
export function repeatable(body: unknown): string | null {
  return RESPONSE.Check(body) ? JSON.stringify([body.answers, body.usage]) : null;
}

/** Returns the flaw of a 200's body, in words; null for none. */
export function flawOf(
  { mode, questions }: Pick<ValidRequest, 'mode' | 'questions'>,
  body: unknown,
): string | null {
  if (!RESPONSE.Check(body)) return 'it is not a decision';
  const { answers, usage } = body;
  const ids = Object.keys(questions);
  if (body.mode !== mode) return `its mode is ${body.mode}`;
  if (Object.keys(answers).toSorted().join() !== ids.toSorted().join()) return 'it answers other questions';
  if (usage.decisions !== ids.length) return `it counts ${usage.decisions} decisions`;
  const expected = inputCost_micros(PRICE, usage.input_tokens) / MICROS_PER_DOLLAR;
  if (usage.cost_usd !== expected) return `${usage.input_tokens} tokens cost ${usage.cost_usd}`;
  for (const [id, question] of Object.entries(questions)) {
    const flaw = answerFlaw(question, answers[id]);
    if (flaw !== null) return `the answer to ${id} ${flaw}`;
  }
  return null;
}

function answerFlaw(
  question: Question,
  answer: DecisionResponse['answers'][string] | undefined,
): string | null {
  if (answer === undefined || answer.type !== question.type) return 'has another type';
  if (answer.type === 'noul') {
    const is_committed = answer.noul <= UNCOMMITTED.above || answer.noul >= UNCOMMITTED.below;
    return is_committed ? null : `is not committed: ${answer.noul}`;
  }
  const options = question.type === 'noul' ? [] : Object.keys(question.criteria);
  if (Object.keys(answer.probabilities).toSorted().join() !== options.toSorted().join())
    return 'has other options';
  const sum = Object.values(answer.probabilities).reduce((total, probability) => total + probability, 0);
  if (Math.abs(sum - 1) > SUM_TOLERANCE) return `sums to ${sum}`;
  if (answer.type === 'choice') return options.includes(answer.choice) ? null : 'is none of its options';
  return answer.score >= 0 && answer.score <= options.length - 1 ? null : 'is outside of its levels';
}
