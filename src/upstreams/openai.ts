import { createHash } from 'node:crypto';
import { isJsonObject, type JsonValue } from '../json/json-value.ts';
import {
  logitsInOrder,
  NOT_THE_WANTED,
  OTHER_VOCABULARY,
  onlyItem,
  requirePromptRead,
  requireSum,
  type TokenAnswer,
  type TokenProtocol,
  type TokenQuestion,
  WANTED_BIAS,
} from './token-protocol.ts';
import { parsedAnswer, WrongAnswer } from './wrong-answer.ts';

/** The name of a token in the response to a request by ids. */
const TOKEN_ID = /^token_id:(\d{1,9})$/;

/** The most that rounding adds to a sum of probabilities. */
const TOLERANCE = 1e-2;

/**
 * `/v1/completions` of vLLM and SGLang. vLLM 0.26 and later return the tokens of `logprob_token_ids`,
 * whatever `--max-logprobs` is: before the bias, or after it with `--logprobs-mode processed_logprobs`. An
 * older vLLM in that mode ignores the list, and so does SGLang. Both apply the bias, so that the wanted
 * tokens are the most likely ones. The bias is equal for all of them, and changes no difference between them.
 * A server that does neither lacks wanted tokens, which the health probe finds out.
 */
export const OPENAI: TokenProtocol = {
  path: '/v1/completions',
  // vLLM's limit for `logprob_token_ids`.
  wanted_max: 128,
  is_parallel: true,
  needs:
    'It must be vLLM 0.26 or later, an older one with --logprobs-mode processed_logprobs and --max-logprobs 128, or SGLang.',
  body,
  read,
};

function body({ prompt, wanted, model, scope, by_word }: TokenQuestion): string {
  return JSON.stringify({
    ...(model === null ? {} : { model }),
    prompt,
    max_tokens: 1,
    stream: false,
    logprobs: wanted.length,
    logprob_token_ids: wanted.map(({ id }) => id),
    logit_bias: Object.fromEntries(wanted.map(({ id }) => [String(id), WANTED_BIAS])),
    return_tokens_as_token_ids: !by_word,
    // The model's defaults and the server's start options must not change an answer.
    temperature: 1,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    presence_penalty: 0,
    frequency_penalty: 0,
    repetition_penalty: 1,
    ignore_eos: false,
    // Only requests with the same salt share prefixes. The salt does not identify the organization.
    cache_salt: createHash('sha256').update(scope).digest('base64url'),
  });
}

function read(text: string, question: TokenQuestion): TokenAnswer {
  const answer = parsedAnswer(text);
  if (!isJsonObject(answer)) throw new WrongAnswer('The answer is no object.');
  const usage = answer.get('usage');
  if (isJsonObject(usage)) requirePromptRead(usage.get('prompt_tokens'), question);
  const choice = onlyItem(answer.get('choices'));
  const logprobs = isJsonObject(choice) ? choice.get('logprobs') : undefined;
  const likeliest = isJsonObject(logprobs) ? onlyItem(logprobs.get('top_logprobs')) : undefined;
  // One token more or less means that another token is in the list, or that two share a name.
  if (!isJsonObject(likeliest) || likeliest.names.length !== question.wanted.length) {
    throw new WrongAnswer(NOT_THE_WANTED);
  }
  const found = new Map(
    likeliest.names.map((name, index) => [idNamed(name, question), logprobOf(likeliest.values[index])]),
  );
  const logits = logitsInOrder(question, found);
  // Before the bias they may be tiny. vLLM writes -9999 for a probability of 0, which all of them cannot have.
  requireSum(logits, Number.MIN_VALUE, 1 + TOLERANCE);
  return { logits, fingerprint: fingerprintIn(answer) };
}

function idNamed(name: string, { wanted, by_word }: TokenQuestion): number {
  const number = TOKEN_ID.exec(name)?.[1];
  if (number !== undefined) return Number(number);
  const word = name.trimStart();
  const token = wanted.find((one) => one.word === word);
  if (token === undefined) throw new WrongAnswer(by_word ? OTHER_VOCABULARY : NOT_THE_WANTED);
  return token.id;
}

function logprobOf(value: JsonValue | undefined): number {
  // Rounding may make a probability slightly larger than 1.
  if (typeof value === 'number' && value <= 1e-3) return value;
  throw new WrongAnswer('A token has no probability.');
}

/** Returns the server's report of its configuration and its weights. */
function fingerprintIn(answer: { get(name: string): JsonValue | undefined }): string {
  const metadata = answer.get('metadata');
  const facts = [
    answer.get('system_fingerprint'),
    isJsonObject(metadata) ? metadata.get('weight_version') : undefined,
  ];
  return facts.filter((fact) => typeof fact === 'string').join(' ');
}
