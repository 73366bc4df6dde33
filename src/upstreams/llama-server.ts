import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
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

/** The logarithm of the smallest 32-bit number above 0, an upper bound for a probability that is 0 there. */
const SMALLEST_LOG = Math.log(2 ** -149);

/** The tolerance for the sum of the probabilities, which are added up in 32 bits. */
const TOLERANCE = 1e-3;

/**
 * llama.cpp's own `/completion`. Its `n_probs` most likely tokens may lack the wanted ones, so the wanted
 * ones get a bias that puts them above all others. The probabilities are those after sampling, over the
 * `top_k` remaining tokens. These are the wanted ones, whose ratios an equal bias does not change.
 */
export const LLAMA_SERVER: TokenProtocol = {
  path: '/completion',
  // A question has at most 255 options.
  wanted_max: 1_024,
  // A prompt is reused only in the slot that read it, and concurrent calls have a slot each.
  is_parallel: false,
  needs: 'It must be a llama-server that knows "post_sampling_probs" and "logit_bias".',
  body,
  read,
};

function body({ prompt, wanted, model }: TokenQuestion): string {
  return JSON.stringify({
    ...(model === null ? {} : { model }),
    prompt,
    n_predict: 1,
    stream: false,
    cache_prompt: true,
    n_probs: wanted.length,
    post_sampling_probs: true,
    logit_bias: wanted.map(({ id }) => [id, WANTED_BIAS]),
    samplers: ['top_k'],
    top_k: wanted.length,
    // The server's start options must not change an answer.
    mirostat: 0,
    grammar: '',
    ignore_eos: false,
    backend_sampling: false,
    // Otherwise the response repeats the prompt as text.
    response_fields: ['completion_probabilities', 'tokens_evaluated', 'truncated'],
  });
}

function read(text: string, question: TokenQuestion): TokenAnswer {
  const answer = parsedAnswer(text);
  if (!isJsonObject(answer)) throw new WrongAnswer('The answer is no object.');
  requirePromptRead(answer.get('tokens_evaluated'), question);
  if (answer.get('truncated') === true) throw new WrongAnswer('It has cut the prompt.');
  const position = onlyItem(answer.get('completion_probabilities'));
  const likeliest = isJsonObject(position) ? position.get('top_probs') : undefined;
  if (!isJsonArray(likeliest) || likeliest.length === 0) throw new WrongAnswer(NOT_THE_WANTED);
  const words = new Map(question.wanted.map(({ id, word }) => [id, word]));
  const found = new Map(likeliest.map((entry) => entryOf(entry, words)));
  // All tokens in the list are wanted ones; a missing one has a probability of 0 in 32 bits.
  if (found.size !== likeliest.length) throw new WrongAnswer(NOT_THE_WANTED);
  requireSum(found.values(), 1 - TOLERANCE, 1 + TOLERANCE);
  return { logits: logitsInOrder(question, found, SMALLEST_LOG), fingerprint: '' };
}

function entryOf(
  entry: JsonValue,
  words: ReadonlyMap<number, string | null>,
): readonly [id: number, logit: number] {
  if (!isJsonObject(entry)) throw new WrongAnswer(NOT_THE_WANTED);
  const id = entry.get('id');
  const word = typeof id === 'number' ? words.get(id) : undefined;
  if (typeof id !== 'number' || word === undefined) throw new WrongAnswer(NOT_THE_WANTED);
  if (word !== null && wordIn(entry) !== word) throw new WrongAnswer(OTHER_VOCABULARY);
  const probability = entry.get('prob');
  if (typeof probability !== 'number' || !(probability > 0 && probability <= 1)) {
    throw new WrongAnswer('A token has no probability.');
  }
  return [id, Math.log(probability)];
}

function wordIn(entry: JsonObject<JsonValue>): string | null {
  const token = entry.get('token');
  return typeof token === 'string' ? token.trimStart() : null;
}
