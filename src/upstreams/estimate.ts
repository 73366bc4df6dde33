import { classesOf, type Question } from '../questions/question.ts';
import { questionsBody } from './systemone.ts';

/** The most tokens of a server's own words around a record, a question and an option. */
const TOKENS_PER_REQUEST = 256;
const TOKENS_PER_QUESTION = 64;
const TOKENS_PER_OPTION = 16;
/** The average in English text. */
const BYTES_PER_TOKEN = 4;

/** An estimate of a call's tokens, without the model's vocabulary. */
export interface TokenEstimate {
  /** An upper bound for all known servers, for which credit is held. */
  readonly most: number;
  /** The likely number. It is billed where a server does not report its tokens, and counts for fair scheduling. */
  readonly likely: number;
}

/**
 * Estimates the tokens of a call. A token is at least one byte. A server reads the record and the questions,
 * with words of its own around them, and for each question at most the context.
 */
export function estimateTokens(
  state_bytes: number,
  questions: readonly Question[],
  context_tokens: number,
): TokenEstimate {
  const bytes = state_bytes + Buffer.byteLength(questionsBody(questions));
  const around = questions.reduce(
    (tokens, question) => tokens + TOKENS_PER_QUESTION + TOKENS_PER_OPTION * classesOf(question).length,
    TOKENS_PER_REQUEST,
  );
  const most = Math.min(bytes + around, context_tokens * questions.length);
  return { most, likely: Math.min(most, Math.ceil(bytes / BYTES_PER_TOKEN)) };
}
