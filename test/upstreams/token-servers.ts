import type { ServerResponse } from 'node:http';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import type { Behaviour } from './support.ts';

/** The model of a server of tokens: its logits in this process, and the texts of its vocabulary. */
export interface TokenModel {
  readonly evaluator: PlanEvaluator;
  readonly texts: readonly string[];
}

const LlamaServerBody = Type.Object({
  prompt: Type.Array(Type.Integer()),
  logit_bias: Type.Array(Type.Tuple([Type.Integer(), Type.Literal(100)])),
  post_sampling_probs: Type.Literal(true),
  samplers: Type.Tuple([Type.Literal('top_k')]),
  top_k: Type.Integer(),
  n_probs: Type.Integer(),
});
const OpenaiBody = Type.Object({
  prompt: Type.Array(Type.Integer()),
  logprobs: Type.Integer(),
  logprob_token_ids: Type.Array(Type.Integer(), { maxItems: 128 }),
  logit_bias: Type.Record(Type.String(), Type.Literal(100)),
  return_tokens_as_token_ids: Type.Boolean(),
});

/** The logarithm of each token's probability, of the whole vocabulary, after a prompt. */
async function logProbabilities(
  { evaluator, texts }: TokenModel,
  prompt: readonly number[],
): Promise<readonly number[]> {
  const last = prompt.at(-1);
  if (last === undefined) throw new Error('the prompt is empty');
  const read = { index: 0, tokens: texts.map((_, id) => id) };
  const plan = { prefix: prompt.slice(0, -1), branches: [{ tokens: [last], reads: [read] }] };
  const logits = (await evaluator.evaluate(plan, { scope: 'server' }))[0]?.[0] ?? [];
  const highest = Math.max(...logits);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
  return logits.map((logit) => logit - highest - Math.log(sum));
}

function send(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** The text of a token as servers write it. */
const textOf = ({ texts }: TokenModel, id: number) => (texts[id] ?? '').replace(/^Ġ/, ' ');

/** As llama-server: the bias counts, and then the `top_k` tokens that are left. */
export function asLlamaServer(model: TokenModel): Behaviour {
  return async ({ path, body }, response) => {
    if (path !== '/completion') throw new Error(`llama-server has no ${path}`);
    const { prompt, logit_bias, top_k, n_probs } = Value.Parse(LlamaServerBody, JSON.parse(body));
    const bias = new Map(logit_bias);
    const left = (await logProbabilities(model, prompt))
      .map((logit, id) => ({ id, logit: logit + (bias.get(id) ?? 0) }))
      .sort((one, other) => other.logit - one.logit)
      .slice(0, top_k);
    const highest = left[0]?.logit ?? 0;
    const sum = left.reduce((total, { logit }) => total + Math.exp(logit - highest), 0);
    const top_probs = left
      .map(({ id, logit }) => ({ id, token: textOf(model, id), prob: Math.exp(logit - highest) / sum }))
      .slice(0, n_probs);
    send(response, {
      completion_probabilities: [{ ...top_probs[0], top_probs }],
      tokens_evaluated: prompt.length,
      truncated: false,
    });
  };
}

/** A way of `/v1/completions`: which tokens an answer has, with which logarithms. */
type Choosing = (
  logits: readonly number[],
  asked: { readonly ids: readonly number[]; readonly count: number },
) => readonly (readonly [id: number, logit: number])[];

/** As vLLM with `logprob_token_ids`: those tokens, over the whole vocabulary, without the bias. */
export const chosenTokens: Choosing = (logits, { ids }) => ids.map((id) => [id, logits[id] ?? Number.NaN]);

/** As vLLM without it: the likeliest tokens, whatever the bias is. */
export const likeliestTokens: Choosing = (logits, { count }) =>
  logits
    .map((logit, id) => [id, logit] as const)
    .sort(([, one], [, other]) => other - one)
    .slice(0, count);

/** As SGLang: the likeliest tokens after the bias. */
export const biasedTokens: Choosing = (logits, { ids, count }) => {
  const biased = logits.map((logit, id) => logit + (ids.includes(id) ? 100 : 0));
  const sum = Math.log(biased.reduce((total, logit) => total + Math.exp(logit), 0));
  return likeliestTokens(
    biased.map((logit) => logit - sum),
    { ids, count },
  );
};

export function asOpenai(
  model: TokenModel,
  choose: Choosing,
  {
    names_ids,
    system_fingerprint = null,
  }: { readonly names_ids: boolean; readonly system_fingerprint?: string | null },
): Behaviour {
  return async ({ path, body }, response) => {
    if (path !== '/v1/completions') throw new Error(`there is no ${path}`);
    const asked = Value.Parse(OpenaiBody, JSON.parse(body));
    const { prompt, logprobs, logprob_token_ids, return_tokens_as_token_ids } = asked;
    const logits = await logProbabilities(model, prompt);
    const named = names_ids && return_tokens_as_token_ids;
    const top = choose(logits, { ids: logprob_token_ids, count: logprobs }).map(([id, logit]) => [
      named ? `token_id:${id}` : textOf(model, id),
      logit,
    ]);
    send(response, {
      object: 'text_completion',
      choices: [{ index: 0, text: '', logprobs: { top_logprobs: [Object.fromEntries(top)] } }],
      system_fingerprint,
      usage: { prompt_tokens: prompt.length, completion_tokens: 1, total_tokens: prompt.length + 1 },
    });
  };
}
