import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import {
  logitsInOrder,
  NOT_THE_WANTED,
  OTHER_VOCABULARY,
  onlyItem,
  requirePromptRead,
  type TokenAnswer,
  type TokenProtocol,
  type TokenQuestion,
  WANTED_BIAS,
} from './token-protocol.ts';
import { parsedAnswer, WrongAnswer } from './wrong-answer.ts';

/** The logarithm of the smallest number above 0 in 32 bits: a probability that is 0 there is at most that. */
const SMALLEST_LOG = Math.log(2 ** -149);

/**
 * llama.cpp's own `/completion`. Its `n_probs` most likely tokens need not have the wanted ones among them. So the
 * wanted ones get a bias that lifts them above all others. The probabilities are those after sampling, over the `top_k`
 * tokens that are left. These are the wanted ones, and a bias that all of them have changes nothing among them.
 */
export const LLAMA_SERVER: TokenProtocol = {
  path: '/completion',
  // The options of a question are at most 255.
  wanted_max: 1_024,
  // A prompt is reused in the slot that read it, and calls side by side have a slot each.
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
    // What a server was started with must not change an answer.
    mirostat: 0,
    grammar: '',
    ignore_eos: false,
    backend_sampling: false,
    // Otherwise the prompt comes back as text.
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
  // All that are there are wanted; one that is not there has a probability of 0 in 32 bits.
  if (found.size !== likeliest.length) throw new WrongAnswer(NOT_THE_WANTED);
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
