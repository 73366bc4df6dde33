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

/** The unchanged answer of llama.cpp v0.5.0's llama-server to `LLAMA_SERVER.body(QUESTION)` for decision-1. */
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
      // A list that something in between has cut, and numbers that are no shares of one.
      changed((other) => other.completion_probabilities[0].top_probs.splice(1)),
      changed((other) => (other.completion_probabilities[0].top_probs[1].prob = 0.9)),
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

/** The unchanged answer of vLLM 0.32.0 on a CPU to `OPENAI.body(QUESTION)` for decision-1 in 32 bits. */
const VLLM_ANSWER =
  '{"id":"cmpl-880db75bbe30d316","object":"text_completion","created":1795401890,"model":"decision","choices":[{"index":0,"text":"","logprobs":{"text_offset":[0],"token_logprobs":[-19.370193481445312],"tokens":["token_id:7"],"top_logprobs":[{"token_id:7":-19.370193481445312,"token_id:8":-21.134521484375,"token_id:500":-28.315061569213867}]},"finish_reason":"length","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0-6a6e6e52","usage":{"prompt_tokens":8,"total_tokens":9,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":null},"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}';
/** Its probabilities with --logprobs-mode processed_logprobs: after the bias. The token that it took comes first. */
const VLLM_PROCESSED =
  '{"token_id:8":-1.9225552082061768,"token_id:7":-0.15822714567184448,"token_id:500":-9.103096961975098}';
/** And those of two other tokens, with words in the place of ids, as in a trial. */
const ILATION_OR_IVIL: TokenQuestion = {
  ...QUESTION,
  wanted: [
    { id: 7566, word: 'ilation' },
    { id: 2360, word: 'ivil' },
  ],
  by_word: true,
};
const VLLM_WORDS = '{"ivil":-0.030854076147079468,"ilation":-3.4938743114471436}';
/** Those without `logprob_token_ids` and without that mode: the token that it took, and its likeliest ones. */
const VLLM_LIKELIEST =
  '{"token_id:7":-19.370193481445312,"token_id:198":-1.1985262632369995,"token_id:30":-1.3667525053024292,"token_id:339":-2.2240657806396484}';
/** The answer with other probabilities. */
const vllmAnswer = (top_logprobs: string) =>
  VLLM_ANSWER.replace(/"top_logprobs":\[.*?\]/, `"top_logprobs":[${top_logprobs}]`);
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

  test('vLLM gives the wanted tokens in their order, before the bias or after it, and says what it is', () => {
    const exact = probabilitiesOf(OVER_ALL);
    for (const text of [VLLM_ANSWER, vllmAnswer(VLLM_PROCESSED)]) {
      const { logits, fingerprint } = OPENAI.read(text, QUESTION);
      expect(fingerprint).toBe('vllm-0.32.0-6a6e6e52');
      // The other weights have 8 bits.
      probabilitiesOf(logits).forEach((probability, index) => {
        expect(probability).toBeCloseTo(exact[index] ?? Number.NaN, 2);
      });
    }
    const [before, after] = [VLLM_ANSWER, vllmAnswer(VLLM_PROCESSED)].map((text) =>
      probabilitiesOf(OPENAI.read(text, QUESTION).logits),
    );
    before?.forEach((probability, index) => {
      expect(after?.[index]).toBeCloseTo(probability, 5);
    });
  });

  test('vLLM names the wanted tokens by their words in a trial', () => {
    const { logits } = OPENAI.read(vllmAnswer(VLLM_WORDS), ILATION_OR_IVIL);
    expect(logits).toEqual([-3.4938743114471436, -0.030854076147079468]);
    expectWrong(OPENAI, vllmAnswer(VLLM_WORDS.replace('ivil', 'SECRET')), ILATION_OR_IVIL);
  });

  test('SGLang gives the wanted tokens in their order, and says what it is', () => {
    const read = OPENAI.read(JSON.stringify(SGLANG_ANSWER), YES_OR_NO);
    expect(read.fingerprint).toBe('default');
    const [yes = 0, no = 0] = probabilitiesOf(read.logits);
    expect([yes, no]).toEqual([expect.closeTo(0.9, 6), expect.closeTo(0.1, 6)]);
  });

  test('a vLLM that returns its likeliest tokens instead is wrong, as are other prompts and names', () => {
    const answered = (top_logprobs: unknown, prompt_tokens = 8) =>
      JSON.stringify({
        ...JSON.parse(VLLM_ANSWER),
        choices: [{ index: 0, logprobs: { top_logprobs } }],
        usage: { prompt_tokens },
      });
    expectWrong(OPENAI, vllmAnswer(VLLM_LIKELIEST));
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
      answered([{ 'token_id:7566': -0.1, 'token_id:2360': -0.2 }]),
      answered([{ 'token_id:7566': 0, 'token_id:2360': 0 }]),
      // As vLLM writes probabilities of 0, which leave nothing to compare.
      answered([{ 'token_id:7566': -9999, 'token_id:2360': -9999 }]),
      answered([null]),
      answered(undefined),
      JSON.stringify({ ...JSON.parse(VLLM_ANSWER), choices: [] }),
      JSON.stringify({ error: { message: 'SECRET' } }),
      'SECRET',
    ]) {
      expectWrong(OPENAI, text, YES_OR_NO);
    }
  });
});
