import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import {
  type DecisionEngine,
  type DecisionInput,
  openEngine,
  openScoringPlanner,
  PlanRejected,
  type ScoringPlanner,
} from '../../native/engine.ts';
import { healthProbeInput } from '../../src/served-models/health-probe.ts';
import { ModelUnavailable, ModelWarmingUp } from '../../src/served-models/model-answerer.ts';
import type { UpstreamCalibration, UpstreamPool, UpstreamProtocol } from '../../src/store/catalog-records.ts';
import { UpstreamModel, type UpstreamOptions } from '../../src/upstreams/upstream-model.ts';
import { type TinyModel, writeTinyModel } from '../native/support/gguf.ts';
import { CHATML, loadOnCpu, TINY_CHAT } from '../native/support/models.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { answering, type Behaviour, hanging, ManualTime, TestMember, until } from './support.ts';
import { distanceOf, probabilitiesOf, requestOf, tokenPool } from './token-models.ts';
import {
  asLlamaServer,
  asOpenai,
  biasedTokens,
  chosenTokens,
  likeliestTokens,
  type TokenModel,
} from './token-servers.ts';

setDefaultTimeout(120_000);

const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
/** A chat model with a code for every option that there may be, and words that the trial question has. */
const CHAT: TinyModel = {
  control: TINY_CHAT.control,
  words: [
    ...TINY_CHAT.words,
    ...LETTERS.flatMap((first) => LETTERS.map((second) => ` ${first}${second}`)),
    ' record',
    ' light',
    ' on',
  ],
  chat_template: CHATML,
  context_tokens: 4_096,
};
const CONTEXT_TOKENS = 4_000;
/** The same numbers in other batches. */
const TOLERANCE = 1e-4;
const LIST = JSON.stringify({
  object: 'list',
  data: [{ id: 'kev', created: 1, meta: { n_vocab: 1, n_ctx: CONTEXT_TOKENS + 1, n_params: 7 } }],
});

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
let engine: DecisionEngine;
let planner: ScoringPlanner;
let served: TokenModel;
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'chat.gguf');
  await writeTinyModel(path, CHAT);
  engine = await openEngine({
    model_path: path,
    gpu: false,
    threads: 1,
    context_tokens: CONTEXT_TOKENS,
    calibration: 'none',
    evaluator: 'llama',
  });
  planner = await openScoringPlanner({ model_path: path, gpu: false, evaluator: 'llama' });
  const { evaluator, facts } = await loadOnCpu(path);
  served = { evaluator, texts: facts.vocabulary.texts };
});
afterAll(async () => {
  await engine.close();
  await planner.close();
  await served.evaluator.close();
  await directory[Symbol.asyncDispose]();
});

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function member(behaviour: Behaviour, list: Behaviour = answering(200, LIST)): Promise<TestMember> {
  const made = await TestMember.start();
  made.behaviour = behaviour;
  made.onList = list;
  ends.push(() => made.kill());
  return made;
}

function world(
  protocol: UpstreamProtocol,
  members: readonly TestMember[],
  changes: Partial<UpstreamPool> = {},
  options: Pick<UpstreamOptions, 'answer_ms' | 'openPlanner'> = {},
) {
  const time = new ManualTime();
  const problems: unknown[] = [];
  const addresses = members.map(({ address }) => address);
  const model = new UpstreamModel(
    {
      id: 'kev',
      context_tokens: CONTEXT_TOKENS,
      input_price_micros_per_million_tokens: 1,
      upstreams: { ...tokenPool(protocol, addresses, path, planner), ...changes },
    },
    {
      now_ms: time.now_ms,
      schedule: time.schedule,
      answer_ms: 60_000,
      trial_ms: 60_000,
      onProblem: (error) => problems.push(error),
      ...options,
    },
  );
  ends.push(() => model.close());
  const ask = async (input: DecisionInput) => {
    const plan = await model.plan(input);
    return await model.answer(plan, { scope: 'org' });
  };
  return { model, time, problems, ask };
}

async function ours(input: DecisionInput) {
  const plan = await engine.plan(input);
  return { scores: await engine.evaluate(plan, { scope: 'org' }), input_tokens: plan.input_tokens };
}

const SERVERS = [
  ['llama-server', 'llama-server', () => asLlamaServer(served)],
  ['vLLM', 'openai', () => asOpenai(served, chosenTokens, { names_ids: true })],
  ['SGLang', 'openai', () => asOpenai(served, biasedTokens, { names_ids: false })],
] as const;

describe.each(SERVERS)('as %s', (_, protocol, behaviour) => {
  test.each(['fast', 'consistent'] as const)(
    '%s mode answers as the engine does, also where a call does not take all options',
    async (mode) => {
      const { ask, model, problems } = world(protocol, [await member(behaviour())]);
      for (const options of [3, 200]) {
        const input = requestOf(mode, options);
        const expected = await ours(input);
        const { scores, input_tokens } = await ask(input);
        expect(distanceOf(probabilitiesOf(scores), probabilitiesOf(expected.scores))).toBeLessThan(TOLERANCE);
        expect(input_tokens).toBe(expected.input_tokens);
        expect((await model.plan(input)).input_tokens).toBe(expected.input_tokens);
      }
      expect(problems).toEqual([]);
    },
  );

  test('a record has one member, which reads it once, and another one where that stops to answer', async () => {
    const [one, two] = [await member(behaviour()), await member(behaviour())];
    const { ask, problems } = world(protocol, [one, two]);
    const input = requestOf('fast', 3);
    await ask(input);
    await until(() => one.received.length > 0 && two.received.length > 0);
    for (let request = 0; request < 4; request++) {
      const before = [one.received.length, two.received.length];
      await ask(input);
      const asked = [one, two].map(({ received }, index) => received.length - (before[index] ?? 0));
      expect(asked.sort()).toEqual([0, 4]);
    }
    const answers = behaviour();
    for (const each of [one, two]) {
      let calls = 0;
      each.behaviour = (...call) => {
        calls += 1;
        return calls > 2 ? answering(500, '{}')(...call) : answers(...call);
      };
    }
    const expected = await ours(input);
    expect((await ask(input)).input_tokens).toBe(expected.input_tokens);
    expect(problems.length).toBeGreaterThan(0);
  });
});

describe('a server is refused by a sentence', () => {
  const refusal = async (protocol: UpstreamProtocol, one: TestMember) => {
    const { ask, model } = world(protocol, [one]);
    expect(await ask(healthProbeInput('fast')).catch((error: unknown) => error)).toBeInstanceOf(
      ModelUnavailable,
    );
    return model.status().load_error?.replace(one.address, 'It');
  };

  test('that returns its likeliest tokens, whichever are wanted', async () => {
    for (const names_ids of [true, false]) {
      const one = await member(asOpenai(served, likeliestTokens, { names_ids }));
      expect(await refusal('openai', one)).toMatch(
        /^It: It (does not return the probabilities of the wanted tokens|has other words for the tokens)/,
      );
    }
  });

  test('that does not take such a question', async () => {
    expect(await refusal('openai', await member(answering(400, '{}')))).toMatch(
      /^It answered with status 400\. It must be vLLM 0\.26 or later/,
    );
    expect(await refusal('llama-server', await member(answering(400, '{}')))).toMatch(
      /^It answered with status 400\. It must be a llama-server/,
    );
  });

  test('whose vocabulary is not that of the file', async () => {
    for (const behaviour of [
      ['llama-server', asLlamaServer(otherWords())],
      ['openai', asOpenai(otherWords(), chosenTokens, { names_ids: true })],
    ] as const) {
      expect(await refusal(behaviour[0], await member(behaviour[1]))).toBe(
        'It: It has other words for the tokens than the vocabulary file: give the GGUF of its model.',
      );
    }
  });

  test.each([
    ['llama-server', asLlamaServer, { meta: { n_ctx: CONTEXT_TOKENS } }],
    [
      'openai',
      (model: TokenModel) => asOpenai(model, chosenTokens, { names_ids: true }),
      { max_model_len: CONTEXT_TOKENS },
    ],
  ] as const)('that reads fewer tokens than a plan may have (%s)', async (protocol, behaviour, entry) => {
    const list = answering(200, JSON.stringify({ data: [{ id: 'kev', ...entry }] }));
    expect(await refusal(protocol, await member(behaviour(served), list))).toBe(
      'It reads at most 4000 tokens, and a plan with its answer has up to 4001: start it with more, or add the model with --context 3999.',
    );
  });

  test('and so is a vocabulary that is not the one of the day when the model was added', async () => {
    const one = await member(asLlamaServer(served));
    const { ask, problems } = world('llama-server', [one], {
      vocabulary: { path, sha256: '0'.repeat(64), profile: 'codes-v1' },
    });
    for (let request = 0; request < 3; request++) {
      const error = await ask(healthProbeInput('fast')).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelUnavailable);
      expect(String(error)).toContain(path);
    }
    // The file is not read for each request, and no server is asked.
    expect(problems).toHaveLength(1);
    expect(one.received).toEqual([]);
  });
});

const otherWords = (): TokenModel => ({ ...served, texts: [...served.texts.slice(1), ''] });

describe('a server whose drain ends is tried as a new one', () => {
  test.each([
    ['llama-server', asLlamaServer],
    ['openai', (model: TokenModel) => asOpenai(model, chosenTokens, { names_ids: true })],
  ] as const)('and refused where it has another vocabulary by now (%s)', async (protocol, behaviour) => {
    const one = await member(behaviour(served));
    const { ask, model } = world(protocol, [one]);
    const input = requestOf('fast', 3);
    await ask(input);
    model.setDraining([one.address]);
    one.behaviour = behaviour(otherWords());
    model.setDraining([]);
    expect(await ask(input).catch((error: unknown) => error)).toBeInstanceOf(ModelUnavailable);
    expect(model.status().load_error).toContain('It has other words for the tokens');
    one.behaviour = behaviour(served);
    model.setDraining([one.address]);
    model.setDraining([]);
    expect((await ask(input)).input_tokens).toBe((await ours(input)).input_tokens);
  });

  test('and has no fingerprint until its list of models can be read again', async () => {
    const one = await member(asLlamaServer(served));
    const { model, time } = world('llama-server', [one]);
    const fingerprint = async () => {
      await model.load();
      return (await model.measure(await model.plan(requestOf('fast', 3)), { scope: 'org' })).fingerprint;
    };
    const before = await fingerprint();
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    one.onList = answering(500, '{}');
    model.setDraining([one.address]);
    model.setDraining([]);
    expect(await fingerprint()).toBeNull();
    one.onList = answering(200, LIST);
    time.advance(5_000);
    await until(async () => (await fingerprint()) === before);
  });
});

test.each([
  ['another model', answering(200, LIST.replace('"n_params":7', '"n_params":8'))],
  ['another context', answering(200, LIST.replace(`"n_ctx":${CONTEXT_TOKENS + 1}`, '"n_ctx":99999'))],
  ['nothing any more', answering(404, '{}')],
])('a server whose list of models says %s is tried as a new one', async (_, list) => {
  const one = await member(asOpenai(served, chosenTokens, { names_ids: true }));
  const { ask, model, time } = world('openai', [one]);
  const input = requestOf('fast', 3);
  await ask(input);
  one.behaviour = asOpenai(otherWords(), chosenTokens, { names_ids: true });
  one.onList = list;
  time.advance(5_000);
  await until(() => model.members()[0]?.breaker === 'open');
  expect(await ask(input).catch((error: unknown) => error)).toBeInstanceOf(ModelUnavailable);
  expect(model.status().load_error).toContain('It has other words for the tokens');
});

test('a server whose list of models says the same is not tried again', async () => {
  const one = await member(asLlamaServer(served));
  const { model, time } = world('llama-server', [one]);
  await model.load();
  let lists = 0;
  one.onList = (...request) => {
    lists += 1;
    return answering(200, LIST.replace('"created":1', `"created":${lists}`))(...request);
  };
  await until(
    () => lists >= 4,
    () => time.advance(1_000),
  );
  expect(one.received).toHaveLength(1);
});

test('a list of models that cannot be read at a trial after failures leaves nothing of the last one', async () => {
  const one = await member(asLlamaServer(served));
  const { ask, model } = world('llama-server', [one]);
  const input = requestOf('fast', 3);
  await ask(input);
  one.onList = answering(500, '{}');
  let failures = 0;
  one.behaviour = (...call) => {
    failures += 1;
    return (failures <= 3 ? answering(500, '{}') : asLlamaServer(served))(...call);
  };
  for (let request = 0; request < 3; request++) await ask(input).catch(() => undefined);
  await model.load();
  expect((await model.measure(await model.plan(input), { scope: 'org' })).fingerprint).toBeNull();
  expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 3 }]);
});

test('a vocabulary that does not come holds neither a request longer than a client waits, nor a stop', async () => {
  const opening = Promise.withResolvers<ScoringPlanner>();
  const one = await member(asLlamaServer(served));
  const { ask, model, time, problems } = world(
    'llama-server',
    [one],
    {},
    { openPlanner: () => opening.promise },
  );
  const answer = ask(healthProbeInput('fast')).catch((error: unknown) => error);
  time.advance(120_000);
  expect(await answer).toBeInstanceOf(ModelWarmingUp);
  const left = ask(healthProbeInput('fast')).catch((error: unknown) => error);
  await model.close();
  const late = await openScoringPlanner({ model_path: path, gpu: false, evaluator: 'llama' });
  opening.resolve(late);
  expect(await left).toBeInstanceOf(ModelUnavailable);
  expect(await late.plan(healthProbeInput('fast')).catch((error: unknown) => error)).toBeInstanceOf(Error);
  expect(problems).toEqual([]);
});

test('a request that the servers do not take is the client’s, and one that no code is left for too', async () => {
  const one = await member(asLlamaServer(served));
  const { ask, model } = world('llama-server', [one]);
  await ask(healthProbeInput('fast'));
  one.behaviour = answering(400, '{"error":{"type":"exceed_context_size_error"}}');
  expect(await ask(requestOf('fast', 3)).catch((error: unknown) => error)).toBeInstanceOf(PlanRejected);
  expect(model.status().state).toBe('ready');
});

test('calls that still run are given up with the request', async () => {
  const one = await member(asLlamaServer(served));
  // The first question is answered in that time, also on a machine that is busy.
  const { ask, model } = world('llama-server', [one], {}, { answer_ms: 2_000 });
  await ask(healthProbeInput('fast'));
  one.behaviour = hanging;
  await ask(requestOf('consistent', 3)).catch(() => undefined);
  await until(() => model.members().every(({ outstanding_tokens }) => outstanding_tokens === 0));
});

describe('a calibration', () => {
  const temperature = 3;
  const buckets = [{ most_options: 2, temperature }];
  const temperatures = { noul: temperature, choice: buckets, score: buckets };
  const fitted = { cases_sha256: '0'.repeat(64), records: 1, questions: 1 };
  const calibrationFor = (fingerprint: string): UpstreamCalibration => ({
    fingerprint,
    temperatures: { fast: temperatures, consistent: temperatures },
    fitted_on: { fast: fitted, consistent: fitted },
  });
  const input = requestOf('fast', 3);

  test.each([
    ['the list of models', 'llama-server', () => asLlamaServer(served)],
    [
      'the fingerprint of the answers',
      'openai',
      () => asOpenai(served, chosenTokens, { names_ids: true, system_fingerprint: 'one' }),
    ],
  ] as const)(
    'divides the scores, until %s has another model; that is said once',
    async (what, protocol, behaviour) => {
      const one = await member(behaviour());
      const { ask, model, time, problems } = world(protocol, [one]);
      const plain = await ask(input);
      const { fingerprint } = await model.measure(await model.plan(input), { scope: 'org' });
      model.setCalibration(calibrationFor(fingerprint ?? ''));
      const calibrated = await ask(input);
      expect(calibrated.input_tokens).toBe(plain.input_tokens);
      expect(calibrated.scores.flat()).toEqual(
        plain.scores.flat().map((score) => expect.closeTo(score / temperature, 4)),
      );
      if (what === 'the list of models') {
        one.onList = answering(200, LIST.replace('"n_params":7', '"n_params":8'));
        time.advance(5_000);
        // A request during the change would be answered by both models, which is told in other words.
        const now = async () => (await model.measure(await model.plan(input), { scope: 'org' })).fingerprint;
        await until(async () => (await now()) !== fingerprint);
      } else {
        one.behaviour = asOpenai(served, chosenTokens, { names_ids: true, system_fingerprint: 'two' });
      }
      while (problems.length === 0) await ask(input);
      const after = await ask(input);
      expect(after.scores.flat()).toEqual(plain.scores.flat().map((score) => expect.closeTo(score, 4)));
      expect(problems).toMatchObject([
        { name: 'UpstreamFailed', message: expect.stringContaining('not calibrated') },
      ]);
    },
  );

  test('follows neither the time of a list nor the place of a server', async () => {
    const prints: (string | null)[] = [];
    for (const created of [1, 2]) {
      const list = answering(200, LIST.replace('"created":1', `"created":${created}`));
      const { model } = world('llama-server', [await member(asLlamaServer(served), list)]);
      await model.load();
      prints.push((await model.measure(await model.plan(input), { scope: 'org' })).fingerprint);
    }
    expect(prints[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(prints[1]).toBe(prints[0] ?? '');
  });
});
