import { describe, expect, test } from 'bun:test';
import { LLAMA_SERVER } from '../../src/upstreams/llama-server.ts';
import { OPENAI } from '../../src/upstreams/openai.ts';
import type { TokenProtocol, TokenQuestion } from '../../src/upstreams/token-protocol.ts';
import { WrongAnswer } from '../../src/upstreams/wrong-answer.ts';

const QUESTION: TokenQuestion = {
  prompt: [3, 100, 200, 300, 4, 250, 300, 6],
  wanted: [
    { id: 8, word: null },
    { id: 7, word: null },
    { id: 500, word: 'ast' },
  ],
  model: null,
  scope: 'org_1',
  by_word: false,
};
const YES_OR_NO: TokenQuestion = {
  ...QUESTION,
  wanted: [
    { id: 7566, word: 'Yes' },
    { id: 2360, word: 'No' },
  ],
};

/** The softmax of the logits. */
function probabilitiesOf(logits: readonly number[]): readonly number[] {
  const weights = logits.map(Math.exp);
  const sum = weights.reduce((left, right) => left + right, 0);
  return weights.map((weight) => weight / sum);
}

function expectWrong(protocol: TokenProtocol, text: string, question = QUESTION): void {
  let error: unknown;
  try {
    protocol.read(text, question);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(WrongAnswer);
  // A message repeats nothing that a server says.
  expect(String(error)).not.toContain('SECRET');
}

/** What llama-server of llama.cpp v0.5.0 answered to `LLAMA_SERVER.body(QUESTION)` for decision-1, as it is. */
const LLAMA_SERVER_ANSWER =
  '{"completion_probabilities":[{"id":7,"token":"","bytes":[],"prob":0.855377733707428,"top_probs":[{"id":7,"token":"","bytes":[],"prob":0.855377733707428},{"id":8,"token":"","bytes":[],"prob":0.14449623227119446},{"id":500,"token":"ast","bytes":[97,115,116],"prob":0.00012605232768692076}]}],"tokens_evaluated":8,"truncated":false}';
/** The logarithms of the same probabilities over the whole vocabulary, which it gave where it was asked for all 49,152. */
const OVER_ALL = [-21.041793823242188, -19.263504028320312, -28.086103439331055];

describe('llama-server', () => {
  const answer = () => structuredClone(JSON.parse(LLAMA_SERVER_ANSWER));

  test('is asked for the wanted tokens alone, after the prompt’s ids, whatever it was started with', () => {
    expect(JSON.parse(LLAMA_SERVER.body(QUESTION))).toEqual({
      prompt: QUESTION.prompt,
      n_predict: 1,
      stream: false,
      cache_prompt: true,
      n_probs: 3,
      post_sampling_probs: true,
      logit_bias: [
        [8, 100],
        [7, 100],
        [500, 100],
      ],
      samplers: ['top_k'],
      top_k: 3,
      mirostat: 0,
      grammar: '',
      ignore_eos: false,
      backend_sampling: false,
      response_fields: ['completion_probabilities', 'tokens_evaluated', 'truncated'],
    });
    expect(JSON.parse(LLAMA_SERVER.body({ ...QUESTION, model: 'kev' })).model).toBe('kev');
  });

  test('gives the wanted tokens’ probabilities in their order, as over the whole vocabulary', () => {
    const { logits } = LLAMA_SERVER.read(LLAMA_SERVER_ANSWER, QUESTION);
    const exact = probabilitiesOf(OVER_ALL);
    probabilitiesOf(logits).forEach((probability, index) => {
      expect(probability).toBeCloseTo(exact[index] ?? Number.NaN, 6);
    });
  });

  test('leaves out a token whose probability is 0 in 32 bits, which gets the smallest one', () => {
    const rest = answer();
    rest.completion_probabilities[0].top_probs.pop();
    const [, , last = 0] = LLAMA_SERVER.read(JSON.stringify(rest), QUESTION).logits;
    expect(last).toBeCloseTo(-103.28, 2);
    rest.completion_probabilities[0].top_probs = [];
    expectWrong(LLAMA_SERVER, JSON.stringify(rest));
  });

  test('that returns other tokens, reads another prompt, or has another vocabulary is wrong', () => {
    const changed = (change: (answer: ReturnType<typeof JSON.parse>) => void) => {
      const other = answer();
      change(other);
      return JSON.stringify(other);
    };
    for (const text of [
      changed((other) => (other.tokens_evaluated = 9)),
      changed((other) => (other.truncated = true)),
      changed((other) => (other.completion_probabilities[0].top_probs[0].id = 9)),
      changed((other) => (other.completion_probabilities[0].top_probs[1].id = 7)),
      changed((other) => (other.completion_probabilities[0].top_probs[0].prob = 1.1)),
      changed((other) => (other.completion_probabilities[0].top_probs[0].prob = null)),
      changed((other) => (other.completion_probabilities[0].top_probs[2].token = 'SECRET')),
      changed((other) => other.completion_probabilities.push(other.completion_probabilities[0])),
      // Without "post_sampling_probs", which older ones do not know.
      LLAMA_SERVER_ANSWER.replace('top_probs', 'top_logprobs'),
      '{"content":"SECRET"}',
      '"SECRET"',
      'SECRET',
      '',
    ]) {
      expectWrong(LLAMA_SERVER, text);
    }
  });
});

/** The shape of vLLM's `CompletionResponse`, with `token_id:` names as it writes them where they are asked for. */
const VLLM_ANSWER = {
  id: 'cmpl-6f1c',
  object: 'text_completion',
  created: 1_795_380_263,
  model: 'kev-4b',
  choices: [
    {
      index: 0,
      text: ' Yes',
      logprobs: {
        text_offset: [0],
        token_logprobs: [-0.1053605079650879],
        tokens: ['token_id:7566'],
        top_logprobs: [{ 'token_id:7566': -0.1053605079650879, 'token_id:2360': -2.3025851249694824 }],
      },
      finish_reason: 'length',
      stop_reason: null,
      token_ids: null,
      prompt_logprobs: null,
      prompt_token_ids: null,
    },
  ],
  service_tier: null,
  system_fingerprint: 'vllm-0.24.0-tp1-5be1f9c2',
  usage: { prompt_tokens: 8, total_tokens: 9, completion_tokens: 1, prompt_tokens_details: null },
  kv_transfer_params: null,
};
/** The shape of SGLang's, which names tokens by their text, after the bias. */
const SGLANG_ANSWER = {
  id: '9d0f',
  object: 'text_completion',
  created: 1_795_380_263,
  model: 'kev-4b',
  choices: [
    {
      index: 0,
      text: ' Yes',
      logprobs: {
        text_offset: [-1],
        token_logprobs: [-0.1053605079650879],
        tokens: [' Yes'],
        top_logprobs: [{ ' Yes': -0.1053605079650879, ' No': -2.3025851249694824 }],
      },
      finish_reason: 'length',
      matched_stop: null,
    },
  ],
  usage: { prompt_tokens: 8, total_tokens: 9, completion_tokens: 1, prompt_tokens_details: null },
  metadata: { weight_version: 'default' },
};

describe('openai', () => {
  test('is asked for the wanted tokens in the ways of vLLM and of SGLang, whatever the model comes with', () => {
    const body = JSON.parse(OPENAI.body(YES_OR_NO));
    expect(body).toEqual({
      prompt: QUESTION.prompt,
      max_tokens: 1,
      stream: false,
      logprobs: 2,
      logprob_token_ids: [7566, 2360],
      logit_bias: { 7566: 100, 2360: 100 },
      return_tokens_as_token_ids: true,
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      presence_penalty: 0,
      frequency_penalty: 0,
      repetition_penalty: 1,
      ignore_eos: false,
      cache_salt: expect.stringMatching(/^[\w-]{43}$/),
    });
    // One organization's prefixes are not another's, and the salt does not name it.
    expect(OPENAI.body({ ...YES_OR_NO, scope: 'org_2' })).not.toContain(body.cache_salt);
    expect(OPENAI.body(YES_OR_NO)).not.toContain('org_1');
    expect(JSON.parse(OPENAI.body({ ...YES_OR_NO, by_word: true, model: 'kev' }))).toMatchObject({
      model: 'kev',
      return_tokens_as_token_ids: false,
    });
  });

  test.each([
    ['vLLM', VLLM_ANSWER, 'vllm-0.24.0-tp1-5be1f9c2'],
    ['SGLang', SGLANG_ANSWER, 'default'],
  ])('%s gives the wanted tokens in their order, and says what it is', (_, answer, fingerprint) => {
    const read = OPENAI.read(JSON.stringify(answer), YES_OR_NO);
    expect(read.fingerprint).toBe(fingerprint);
    const [yes = 0, no = 0] = probabilitiesOf(read.logits);
    expect([yes, no]).toEqual([expect.closeTo(0.9, 6), expect.closeTo(0.1, 6)]);
  });

  test('a vLLM that returns its likeliest tokens instead is wrong, as are other prompts and names', () => {
    const answered = (top_logprobs: unknown, prompt_tokens = 8) =>
      JSON.stringify({
        ...VLLM_ANSWER,
        choices: [{ ...VLLM_ANSWER.choices[0], logprobs: { top_logprobs } }],
        usage: { prompt_tokens },
      });
    const right = { 'token_id:7566': -0.1, 'token_id:2360': -2.3 };
    expect(OPENAI.read(answered([right]), YES_OR_NO).logits).toEqual([-0.1, -2.3]);
    for (const text of [
      answered([right], 9),
      answered([right, right]),
      answered([{ 'token_id:7566': -0.1 }]),
      answered([{ ...right, 'token_id:11': -0.05 }]),
      answered([{ 'token_id:7566': -0.1, 'token_id:11': -0.05 }]),
      answered([{ ' Yes': -0.1, ' SECRET': -2.3 }]),
      answered([{ ' Yes': -0.1, Yes: -2.3 }]),
      answered([{ 'token_id:7566': -0.1, 'token_id:2360': null }]),
      answered([{ 'token_id:7566': 0.1, 'token_id:2360': -2.3 }]),
      answered([null]),
      answered(undefined),
      JSON.stringify({ ...VLLM_ANSWER, choices: [] }),
      JSON.stringify({ error: { message: 'SECRET' } }),
      'SECRET',
    ]) {
      expectWrong(OPENAI, text, YES_OR_NO);
    }
  });
});
