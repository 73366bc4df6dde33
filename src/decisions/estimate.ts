import type { JsonValue } from '../../native/plan/json.ts';
import type { Question } from '../../native/plan/question.ts';
import type { DecisionRequest } from './request.ts';

/** Added to the exact count for the token window: the estimate is deliberately high (spec, "Rate limits"). */
const MARGIN_TOKENS = 16;

/** Control tokens and template text that a profile may put around a record or a question. */
const FORMAT_TOKENS = 512;
/** A profile may read a question this often: before the record, and in several wordings after it, with and without it. */
const QUESTION_READS_MAX = 6;

/** What the token window reserves for a request that will be billed `input_tokens`. */
export function estimatedTokens(input_tokens: number): number {
  return input_tokens + MARGIN_TOKENS;
}

/**
 * More tokens than the request can be billed for, from its size, question count and mode alone: for a model that is
 * not loaded, so that nothing can be tokenized yet. A byte is at least a token's length.
 */
export function worstCaseTokens(request: DecisionRequest, context_tokens: number): number {
  const record = bounded(request.state, context_tokens);
  const questions = request.questions.map(({ question }) =>
    Math.min(context_tokens, FORMAT_TOKENS + boundOfQuestion(question, context_tokens)),
  );
  const reads = request.mode === 'fast' ? 1 : request.questions.length;
  const asked = questions.reduce((sum, tokens) => sum + tokens, 0);
  return reads * (record + FORMAT_TOKENS) + QUESTION_READS_MAX * asked;
}

function boundOfQuestion(question: Question, context_tokens: number): number {
  const values: readonly (JsonValue | undefined)[] =
    question.type === 'noul'
      ? [question.yes, question.no]
      : question.type === 'choice'
        ? question.options.flatMap((option) => [option.id, option.description])
        : question.levels;
  const own = [question.instructions, ...values].reduce<number>(
    (sum, value) => sum + bounded(value, context_tokens) + 4,
    0,
  );
  return Math.min(context_tokens, own);
}

/** Rendering can make a value longer than its JSON, so only a string is bounded by its own bytes. */
function bounded(value: JsonValue | undefined, context_tokens: number): number {
  if (value === undefined || value === null) return 0;
  return typeof value === 'string' ? Math.min(context_tokens, Buffer.byteLength(value) + 1) : context_tokens;
}
