import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DecisionInput, PlanRejected } from '../../native/engine.ts';
import type { CertificateFiles } from '../../src/http/certificate.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { QueueFull } from '../../src/scheduling/model-scheduler.ts';
import { ModelUnavailable, ModelWarmingUp } from '../../src/served-models/model-answerer.ts';
import type { UpstreamCalibration, UpstreamPool } from '../../src/store/catalog-records.ts';
import { UpstreamFailed } from '../../src/upstreams/upstream-failed.ts';
import { UpstreamModel } from '../../src/upstreams/upstream-model.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { MovableClock } from '../support/clock.ts';
import { RecordedLog } from '../support/problems.ts';
import {
  answering,
  type Behaviour,
  echoing,
  halfAnswering,
  hanging,
  ManualTime,
  type Received,
  TestMember,
  until,
  YES,
} from './support.ts';

setDefaultTimeout(120_000);

const directory = mkdtempSync(join(tmpdir(), 'tds-pool-'));
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

const RECORD = 'Xq-the-record-Zv';
const INPUT: DecisionInput = {
  state: RECORD,
  questions: [{ type: 'noul', instructions: 'on?', yes: undefined, no: undefined }],
  mode: 'fast',
};
const PATIENT_MS = 10_000;
/** For members that never answer; those that do are much quicker, also on a machine that is busy. */
const IMPATIENT_MS = 2_000;

async function member(behaviour = answering(200, YES)): Promise<TestMember> {
  const made = await TestMember.start();
  made.behaviour = behaviour;
  made.onList = answering(200, '{"models":[]}');
  ends.push(() => made.kill());
  return made;
}

/** A model on a pool of these members, with its time and what it reported. */
function world(
  members: readonly Pick<TestMember, 'address'>[],
  changes: Partial<UpstreamPool> = {},
  answer_ms = PATIENT_MS,
) {
  const time = new ManualTime();
  const problems: unknown[] = [];
  const model = new UpstreamModel(
    {
      id: 'kev',
      context_tokens: 1_000,
      input_price_micros_per_million_tokens: 1,
      upstreams: {
        protocol: 'systemone',
        addresses: members.map(({ address }) => address),
        draining: [],
        model: null,
        token_file: null,
        ca_file: null,
        ...changes,
      },
    },
    {
      now_ms: time.now_ms,
      schedule: time.schedule,
      answer_ms,
      trial_ms: PATIENT_MS,
      onProblem: (error) => problems.push(error),
    },
  );
  ends.push(() => model.close());
  const ask = async (input = INPUT, signal = new AbortController().signal) => {
    const plan = await model.plan(input);
    return await model.answer(plan, { scope: 'test', signal });
  };
  /** Failures that did not lead to an answer elsewhere. */
  const failing = async () => {
    try {
      await ask();
    } catch (error) {
      return error;
    }
    throw new Error('it was answered');
  };
  return { model, time, problems, ask, failing };
}

/** How often it was asked about the record. */
const asked = ({ received }: { readonly received: readonly Received[] }) =>
  received.filter(({ body }) => body.includes(RECORD)).length;

/** Each member has shown that it is well, and nothing is under way. */
async function untilAllAsked(ask: () => Promise<unknown>, members: readonly TestMember[]): Promise<void> {
  while (members.some((each) => asked(each) === 0)) await ask();
}

describe('a pool', () => {
  test('opens nothing before its first use, and then sends each member a health probe about no client’s record', async () => {
    const [one, two] = [await member(), await member()];
    const { model, time, ask } = world([one, two]);
    expect(model.status()).toEqual({ state: 'cold', load_error: undefined });
    expect([one.received.length, two.received.length, time.pending]).toEqual([0, 0, 0]);
    await ask();
    await until(() => one.received.length + two.received.length === 3);
    expect(asked(one) + asked(two)).toBe(1);
    expect(model.status()).toEqual({ state: 'ready', load_error: undefined });
  });

  test('gives each call to the member with the fewest tokens outstanding', async () => {
    const [one, two] = [await member(), await member()];
    const { ask } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    const before = new Map([one, two].map((each) => [each, asked(each)]));
    const since = (each: TestMember) => asked(each) - (before.get(each) ?? 0);
    const held: (() => void)[] = [];
    for (const each of [one, two]) {
      each.behaviour = (_received, response) => {
        held.push(() => void response.end(YES));
      };
    }
    const large = ask({ ...INPUT, state: RECORD.repeat(10) });
    await until(() => held.length === 1);
    const busy = since(one) === 1 ? one : two;
    const free = busy === one ? two : one;
    const small = Array.from({ length: 3 }, () => ask());
    await until(() => held.length === 4);
    expect([since(busy), since(free)]).toEqual([1, 3]);
    for (const end of held) end();
    await Promise.all([large, ...small]);
  });

  test('gives members calls by their weights, idle or loaded', async () => {
    const [one, two] = [await member(), await member()];
    const { ask, model } = world([one, two], { members: { [two.address]: { weight: 3 } } });
    await ask();
    await until(() => model.members().every(({ breaker }) => breaker === 'closed'));
    const before = [asked(one), asked(two)];
    const since = () => [asked(one) - (before[0] ?? 0), asked(two) - (before[1] ?? 0)];
    for (let request = 0; request < 8; request++) await ask();
    expect(since()).toEqual([2, 6]);
    const held: (() => void)[] = [];
    for (const each of [one, two]) {
      each.behaviour = (_received, response) => {
        held.push(() => void response.end(YES));
      };
    }
    const calls = Array.from({ length: 8 }, () => ask());
    await until(() => held.length === 8);
    expect(since()).toEqual([4, 12]);
    for (const end of held) end();
    await Promise.all(calls);
  });

  test('leaves a member that hangs after its own time, or after the pool’s, and asks the other', async () => {
    for (const changes of [
      (address: string) => ({ members: { [address]: { answer_ms: IMPATIENT_MS } } }),
      () => ({ answer_ms: IMPATIENT_MS }),
    ]) {
      const [one, two] = [await member(), await member()];
      const { ask, problems } = world([one, two], changes(one.address), 600_000);
      await untilAllAsked(ask, [one, two]);
      one.behaviour = hanging;
      while (problems.length === 0) expect((await ask()).input_tokens).toBe(7);
      expect(problems).toMatchObject([
        { failure: 'timed_out', message: `${one.address} did not answer in 2 seconds.` },
      ]);
    }
  });

  test('asks another member where nothing was answered, once, and reports that', async () => {
    for (const failure of [
      answering(500, '{}'),
      answering(401, '{}'),
      answering(302, '', { location: 'http://127.0.0.1:1/' }),
      hanging,
    ]) {
      const [one, two] = [await member(), await member()];
      const { ask, problems } = world([one, two], {}, failure === hanging ? IMPATIENT_MS : PATIENT_MS);
      await untilAllAsked(ask, [one, two]);
      one.behaviour = failure;
      while (problems.length === 0) expect((await ask()).input_tokens).toBe(7);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toBeInstanceOf(UpstreamFailed);
    }
  });

  test('asks the only member a second time when it ends an idle connection in the moment of a call', async () => {
    const one = await member();
    const { ask, failing, model } = world([one]);
    await ask();
    const ending: Behaviour = (_received, response) => void response.destroy();
    one.behaviour = (...request) => {
      one.behaviour = answering(200, YES);
      return ending(...request);
    };
    expect((await ask()).input_tokens).toBe(7);
    expect(asked(one)).toBe(3);
    expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 1 }]);
    // Once, and then the client is told.
    one.behaviour = ending;
    expect(await failing()).toMatchObject({ failure: 'cut_off' });
    expect(asked(one)).toBe(5);
  });

  test('answers every call to the only member, alone or at once with others, when that has ended all idle connections', async () => {
    const one = await member();
    const { ask, model } = world([one]);
    await ask();
    const idle = new Set<object | null>();
    const together = Promise.withResolvers<void>();
    one.behaviour = async (received, response, forward) => {
      idle.add(response.socket);
      if (idle.size === 6) together.resolve();
      await together.promise;
      await answering(200, YES)(received, response, forward);
    };
    const askAtOnce = () => Promise.all(Array.from({ length: 6 }, () => ask()));
    await askAtOnce();
    one.behaviour = (received, response, forward) =>
      idle.has(response.socket) ? void response.destroy() : answering(200, YES)(received, response, forward);
    expect((await ask()).input_tokens).toBe(7);
    expect((await askAtOnce()).map(({ input_tokens }) => input_tokens)).toEqual([7, 7, 7, 7, 7, 7]);
    expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 6 }]);
  });

  test('asks nobody else after an answer that broke off or is wrong: it may have been paid for', async () => {
    const wrong = YES.replace('0.9', '1.9');
    for (const failure of [
      halfAnswering,
      answering(200, wrong),
      answering(200, 'no json'),
      answering(200, ''),
    ]) {
      const [one, two] = [await member(), await member()];
      const { ask, failing } = world([one, two]);
      await untilAllAsked(ask, [one, two]);
      const before = asked(one) + asked(two);
      one.behaviour = failure;
      two.behaviour = failure;
      expect(await failing()).toMatchObject({ name: 'UpstreamFailed', failure: 'bad_answer' });
      expect(asked(one) + asked(two)).toBe(before + 1);
    }
  });

  test('keeps room for the calls of all other pools while a member does not answer', async () => {
    const [mute, well] = [await member(), await member()];
    const stuck = world([mute], {}, 600_000);
    await stuck.ask();
    mute.behaviour = hanging;
    const calls = Array.from({ length: 300 }, () => stuck.ask().catch((error: unknown) => error));
    await until(() => asked(mute) > 100);
    expect((await world([well]).ask()).input_tokens).toBe(7);
    // The rest waits for its turn.
    expect(asked(mute)).toBeLessThan(200);
    await stuck.model.close();
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(ModelUnavailable);
  });

  test('reads no answer to its end that is longer than any can be', async () => {
    const one = await member();
    const { ask, failing } = world([one]);
    await ask();
    let sent = 0;
    let was_cut = false;
    one.behaviour = (_received, response) => {
      const piece = Buffer.alloc(1_048_576, ' ');
      const send = () => {
        if (response.destroyed) return;
        sent += piece.length;
        response.write(piece, () => setImmediate(send));
      };
      response.on('close', () => {
        was_cut = true;
      });
      send();
    };
    expect(await failing()).toMatchObject({ failure: 'bad_answer' });
    await until(() => was_cut);
    expect(sent).toBeLessThan(64 * 1_048_576);
  });

  test('takes an answer as long as its question allows, with all levels of 64 questions, and no longer', async () => {
    const one = await member();
    const { ask, failing } = world([one]);
    await ask();
    const levels = Array.from({ length: 255 }, () => '');
    const questions = Array.from(
      { length: 64 },
      () => ({ type: 'score', instructions: '', levels }) as const,
    );
    const names = levels.map((_, level) => [String(level), level === 0 ? 1 : 0.0000000000000001] as const);
    const answers = questions.map((_, index) => [
      `q${index + 1}`,
      {
        type: 'score',
        score: 0,
        probabilities: Object.fromEntries(names),
        legend: Object.fromEntries(levels.entries()),
      },
    ]);
    const text = JSON.stringify({ answers: Object.fromEntries(answers) });
    one.behaviour = answering(200, text);
    expect((await ask({ ...INPUT, questions })).scores).toHaveLength(64);
    one.behaviour = answering(200, YES + ' '.repeat(2 ** 21));
    expect(await failing()).toMatchObject({
      failure: 'bad_answer',
      message: expect.stringContaining('too long'),
    });
  });

  test('unpacks nothing: an answer is as long as what was sent', async () => {
    const one = await member();
    const { ask, failing } = world([one]);
    await ask();
    one.behaviour = (received, response) => {
      expect(received.accept_encoding).toBe('identity');
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(Bun.gzipSync(Buffer.from(YES)));
    };
    expect(await failing()).toMatchObject({ failure: 'bad_answer' });
  });

  test('takes a client that leaves off the member at once, which is not the member’s fault', async () => {
    const one = await member();
    const { model, ask } = world([one]);
    await ask();
    let was_cut = false;
    one.behaviour = (_received, response) => {
      response.on('close', () => {
        was_cut = true;
      });
    };
    for (let client = 0; client < 4; client++) {
      const leave = new AbortController();
      const gone = new Error('gone');
      was_cut = false;
      const before = asked(one);
      const answer = ask(INPUT, leave.signal);
      await until(() => asked(one) > before);
      leave.abort(gone);
      expect(await answer.catch((error: unknown) => error)).toBe(gone);
      await until(() => was_cut);
    }
    expect(model.status().state).toBe('ready');
  });

  test('books a failure on the member that failed, and not on those that the request gives up for it', async () => {
    const [one, two] = [await member(), await member()];
    const { ask, model, problems } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    const before = asked(one) + asked(two);
    const held: (() => void)[] = [];
    one.behaviour = (_received, response) => {
      held.push(() => void response.end('{}'));
    };
    two.behaviour = hanging;
    const options = ['red', 'green'].map((id) => ({ id, description: null }));
    const question = { type: 'choice', instructions: 'Which light?', options } as const;
    const answer = ask({ ...INPUT, questions: Array(4).fill(question), mode: 'consistent' });
    const failure = answer.catch((error: unknown) => error);
    await until(() => asked(one) + asked(two) === before + 8);
    expect(asked(two)).toBeGreaterThan(2);
    held[0]?.();
    expect(await failure).toMatchObject({ failure: 'bad_answer' });
    expect(model.members()).toMatchObject([
      { breaker: 'closed', failures: 1, outstanding_tokens: 0 },
      { breaker: 'closed', failures: 0, outstanding_tokens: 0 },
    ]);
    expect(problems).toEqual([]);
  });

  test('that is closed ends what it was asking', async () => {
    const one = await member();
    const { model, ask } = world([one]);
    await ask();
    one.behaviour = hanging;
    const answer = ask().catch((error: unknown) => error);
    await until(() => asked(one) === 2);
    await model.close();
    expect(await answer).toBeInstanceOf(ModelUnavailable);
    expect(await ask().catch((error: unknown) => error)).toBeInstanceOf(ModelUnavailable);
  });
});

describe('what a client is told', () => {
  test.each([400, 413, 422])(
    '%d: the model does not take the request, which no other member is asked',
    async (status) => {
      const [one, two] = [await member(), await member()];
      const { ask, failing, model } = world([one, two]);
      await untilAllAsked(ask, [one, two]);
      const before = asked(one) + asked(two);
      for (const each of [one, two]) each.behaviour = answering(status, JSON.stringify({ error: RECORD }));
      for (let request = 0; request < 4; request++) {
        const error = await failing();
        expect(error).toBeInstanceOf(PlanRejected);
        expect(String(error)).not.toContain(RECORD);
      }
      expect(asked(one) + asked(two)).toBe(before + 4);
      // It is no fault of theirs.
      expect(model.status().state).toBe('ready');
    },
  );

  test('where all are busy: to come back when the first has rested; they are asked nothing meanwhile', async () => {
    const [one, two] = [await member(), await member()];
    const { ask, failing, time } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    one.behaviour = answering(429, '{}', { 'retry-after': '9' });
    two.behaviour = answering(503, '{}', { 'retry-after': '5' });
    const first = await failing();
    expect(first).toBeInstanceOf(QueueFull);
    const before = asked(one) + asked(two);
    time.advance(2_000);
    expect(await failing()).toMatchObject({ name: 'QueueFull', retry_after_s: 3 });
    expect(asked(one) + asked(two)).toBe(before);
    two.behaviour = answering(200, YES);
    time.advance(3_000);
    expect((await ask()).input_tokens).toBe(7);
  });

  for (const [name, body] of [
    ['this program', '{"error":{"code":"model_warming_up"}}'],
    ['llama-server', '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'],
  ] as const) {
    test(`while the only member loads, as ${name} says it: that the model is warming up`, async () => {
      const one = await member(answering(503, body, { 'retry-after': '4' }));
      const { ask, failing, model, time, problems } = world([one]);
      expect(await failing()).toMatchObject({ name: 'ModelWarmingUp', retry_after_s: 4 });
      expect(model.status()).toEqual({ state: 'loading', load_error: undefined });
      time.advance(1_000);
      expect(await failing()).toBeInstanceOf(ModelWarmingUp);
      expect(one.received).toHaveLength(1);
      one.behaviour = answering(200, YES);
      time.advance(3_000);
      expect((await ask()).input_tokens).toBe(7);
      expect(problems).toEqual([]);
    });
  }

  test('while the only member loads anew: the same, until it has answered a health probe again', async () => {
    const one = await member();
    const { ask, failing, model, time } = world([one]);
    await ask();
    one.behaviour = answering(503, '{"error":{"message":"Loading model"}}', { 'retry-after': '4' });
    expect(await failing()).toMatchObject({ name: 'ModelWarmingUp', retry_after_s: 4 });
    expect(model.status()).toEqual({ state: 'loading', load_error: undefined });
    expect(model.members()).toMatchObject([{ breaker: 'open', failures: 0 }]);
    const before = [asked(one), one.received.length];
    time.advance(3_000);
    expect(await failing()).toMatchObject({ name: 'ModelWarmingUp', retry_after_s: 1 });
    expect([asked(one), one.received.length]).toEqual(before);
    // After a load, the server counts as another one.
    one.behaviour = answering(200, '{"answers":{}}');
    time.advance(1_000);
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    expect(asked(one)).toBe(before[0] ?? 0);
    one.behaviour = answering(200, YES);
    time.advance(1_000);
    expect((await ask()).input_tokens).toBe(7);
  });

  test('while the only member loads, to who comes back as soon as it was told to: the same, until it answers', async () => {
    const one = await member();
    const { ask, failing, time } = world([one]);
    one.behaviour = (...request) => {
      // Its rest begins between two looks.
      time.advance(10);
      return answering(503, '{"error":{"message":"Loading model"}}')(...request);
    };
    for (let request = 0; request < 3; request++) {
      expect(await failing()).toMatchObject({ name: 'ModelWarmingUp', retry_after_s: 2 });
      time.advance(2_000);
    }
    one.behaviour = answering(200, YES);
    expect((await ask()).input_tokens).toBe(7);
  });

  test('where each member failed its trial: that the model is unavailable, also while one is tried again', async () => {
    const [one, two] = [await member(), await member()];
    const { failing, model, time } = world([one, two]);
    const held: (() => void)[] = [];
    one.behaviour = (...request) => {
      held.push(() => void answering(500, '{}')(...request));
    };
    two.behaviour = answering(500, '{}');
    const failure = failing();
    await until(() => held.length === 1 && model.members()[1]?.breaker === 'open');
    two.behaviour = hanging;
    time.advance(1_000);
    await until(() => two.received.length === 2);
    held[0]?.();
    expect(await failure).toBeInstanceOf(ModelUnavailable);
    expect(model.members().map(({ breaker }) => breaker)).toEqual(['open', 'half_open']);
  });

  test('without a member that answers: that the model is unavailable, at once and without asking', async () => {
    const [one, two] = [await member(answering(500, '{}')), await member(echoing)];
    const { failing, model, problems } = world([one, two]);
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    const before = one.received.length + two.received.length;
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    expect(one.received.length + two.received.length).toBe(before);
    expect(model.status()).toEqual({
      state: 'cold',
      load_error: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ answered with status 500\.$/),
    });
    // One for each trial.
    expect(problems).toHaveLength(2);
  });

  test('and the operator, where the only member hangs: what it failed with, also while it is tried again', async () => {
    const one = await member(answering(500, '{}'));
    const { failing, model, time } = world([one]);
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    one.behaviour = hanging;
    time.advance(1_000);
    await until(() => one.received.length === 2);
    expect(model.members()).toMatchObject([{ breaker: 'half_open' }]);
    expect(model.status()).toEqual({ state: 'loading', load_error: expect.stringContaining('500') });
  });

  test('where the only member was busy and then failed its trial: that the model is unavailable', async () => {
    const one = await member();
    const { ask, failing, model } = world([one]);
    await ask();
    const held: ((status: number) => void)[] = [];
    one.behaviour = (...request) => {
      held.push((status) => void answering(status, '{}', { 'retry-after': '60' })(...request));
    };
    const failures = Array.from({ length: 4 }, () => failing());
    await until(() => held.length === 4);
    one.behaviour = answering(500, '{}');
    const [busy, ...others] = held;
    busy?.(429);
    expect(await Promise.race(failures)).toMatchObject({ name: 'QueueFull', retry_after_s: 60 });
    for (const end of others) end(500);
    await Promise.all(failures);
    await until(() => model.members()[0]?.breaker === 'open');
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
  });

  test.each([429, 502])(
    'and the operator, where the only member is busy (%d): that the model is ready, as with a full queue',
    async (status) => {
      const one = await member();
      const { ask, failing, model, time } = world([one]);
      await ask();
      one.behaviour = answering(status, '{}', { 'retry-after': '9' });
      for (let request = 0; request < 3; request++) {
        expect(await failing()).toMatchObject({ name: 'QueueFull', retry_after_s: 9 });
        time.advance(9_000);
      }
      expect(model.status()).toEqual({ state: 'ready', load_error: undefined });
      expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 0 }]);
    },
  );

  test('and the operator, where the only member was always busy: that the model is loading, until it has been tried', async () => {
    const one = await member(answering(429, '{}', { 'retry-after': '2' }));
    const { failing, model, time } = world([one]);
    expect(await failing()).toMatchObject({ name: 'QueueFull', retry_after_s: 2 });
    expect(model.status()).toEqual({ state: 'loading', load_error: undefined });
    one.behaviour = answering(500, '{}');
    time.advance(2_000);
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    expect(model.status()).toMatchObject({ state: 'cold', load_error: expect.stringContaining('500') });
    one.behaviour = answering(200, YES);
    await until(
      () => model.status().state === 'ready',
      () => time.advance(1_000),
    );
  });

  // As vLLM 0.32.0 says that it has no such model, and that it does not ask its model in that way.
  test.each([
    [
      401,
      'It asks for a token: give the file with it by --token-file, or for this server alone by ",token-file=PATH" behind its address.',
    ],
    [402, 'The account that it is asked with has no credit there.'],
    [404, 'It has no /v1/systemone, or no model of the name that it is asked for: see --upstream-model.'],
    [501, 'It does not answer /v1/systemone for its model.'],
  ])('with what a status of %d means to who adds it', async (status, meaning) => {
    const one = await member(answering(status, '{"error":{"message":"The model `SECRET` does not exist."}}'));
    const { failing, model } = world([one]);
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    expect(model.status().load_error).toBe(`${one.address} answered with status ${status}. ${meaning}`);
  });
});

describe('the log', () => {
  test('has the limit that a member may have reached, on a request and on a trial, and not that one is busy', async () => {
    const one = await member();
    const { ask, failing, problems, time } = world([one]);
    await ask();
    one.behaviour = answering(503, '{}', { 'retry-after': '1' });
    await failing();
    expect(problems).toEqual([]);
    time.advance(1_000);
    one.behaviour = answering(429, '{}', { 'retry-after': '9' });
    await failing();
    const message = `${one.address} answered with status 429. It limits requests: a limit of the key or account that it is asked with may be reached, or it is overloaded.`;
    expect(problems).toMatchObject([{ code: 'STATUS_429', message }]);
    const fresh = world([one]);
    await fresh.failing();
    expect(fresh.problems).toMatchObject([{ code: 'STATUS_429', message }]);
  });

  test('has a limit once an hour for each member, however many calls meet it', async () => {
    const members = [await member(), await member()];
    const { ask, failing, problems, time } = world(members);
    await untilAllAsked(ask, members);
    const limited = answering(429, '{}');
    const held: (() => void)[] = [];
    for (const each of members) {
      each.behaviour = (...request) => {
        held.push(() => void limited(...request));
      };
    }
    const failures = Array.from({ length: 6 }, failing);
    await until(() => held.length === failures.length);
    for (const each of members) each.behaviour = limited;
    for (const end of held) end();
    await Promise.all(failures);
    expect(problems).toHaveLength(2);
    expect(new Set(problems.map(String)).size).toBe(2);
    const before = members.reduce((sum, each) => sum + asked(each), 0);
    time.advance(1_000);
    await failing();
    expect(members.reduce((sum, each) => sum + asked(each), 0)).toBe(before + 2);
    expect(problems).toHaveLength(2);
    time.advance(3_600_000);
    await failing();
    expect(problems).toHaveLength(4);
  });

  test('has the limit that a member’s list of models meets, once', async () => {
    const one = await member();
    let lists = 0;
    const { ask, problems, time } = world([one]);
    await ask();
    one.onList = (...request) => {
      lists += 1;
      return answering(429, '{}')(...request);
    };
    await until(
      () => lists >= 3 && problems.length > 0,
      () => time.advance(1_000),
    );
    expect(problems).toMatchObject([{ code: 'STATUS_429' }]);
  });

  test('tells failures of different kinds apart, also where one place in the code finds them', async () => {
    const one = await member();
    const { ask, failing } = world([one]);
    await ask();
    const recorded = new RecordedLog('error');
    const problems = new ProblemLog(recorded.log, MovableClock.stopped());
    for (const status of [401, 500, 401]) {
      one.behaviour = answering(status, '{}');
      problems.report({
        request_id: `req_${status}`,
        step: 'model',
        code: 'model_unavailable',
        error: await failing(),
      });
    }
    expect((await recorded.problems()).map(({ error, same_as }) => [error, same_as])).toEqual([
      ['UpstreamFailed STATUS_401', undefined],
      ['UpstreamFailed STATUS_500', undefined],
      ['UpstreamFailed STATUS_401', 'req_401'],
    ]);
  });
});

describe('the breaker of a member', () => {
  test('opens at the third failure, sends a health probe at once, and closes when that is answered', async () => {
    const [one, two] = [await member(), await member()];
    const { ask } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    one.behaviour = (...request) => {
      const [{ body }] = request;
      return body.includes(RECORD) ? answering(500, '{}')(...request) : answering(200, YES)(...request);
    };
    const trials = () => one.received.length - asked(one);
    const before_failures = trials();
    while (trials() === before_failures) expect((await ask()).input_tokens).toBe(7);
    expect(asked(one)).toBeGreaterThanOrEqual(3);
    // A record that breaks a healthy member does not keep it away from others.
    one.behaviour = answering(200, YES);
    const before = asked(one);
    while (asked(one) === before) await ask();
  });

  test('stays open after a failed trial, for 1 second and then twice as long, while the other member answers', async () => {
    const [one, two] = [await member(), await member()];
    const { ask, time, problems } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    await one.kill();
    const lists_unanswered = problems.length;
    for (let request = 0; request < 8; request++) expect((await ask()).input_tokens).toBe(7);
    await until(() => problems.length === lists_unanswered + 4);
    const failures = problems.length;
    for (let request = 0; request < 8; request++) await ask();
    expect(problems).toHaveLength(failures);
    time.advance(1_000);
    await until(() => problems.length === failures + 1);
    time.advance(1_000);
    await one.revive();
    const before = one.received.length;
    time.advance(1_000);
    await until(() => one.received.length === before + 1);
    const requests = asked(one);
    while (asked(one) === requests) await ask();
  });

  test('opens when the list of models fails three times, without a request', async () => {
    const one = await member();
    const { ask, model, time } = world([one]);
    await ask();
    await one.kill();
    const passing = () => time.advance(1_000);
    await until(() => model.status().state === 'cold', passing);
    await one.revive();
    await until(() => model.status().state === 'ready', passing);
  });

  test('a server without a list of models is well', async () => {
    const one = await member();
    let lists = 0;
    one.onList = (...request) => {
      lists += 1;
      return answering(404, '{}')(...request);
    };
    const { ask, model, time, problems } = world([one]);
    await ask();
    await until(
      () => lists >= 5,
      () => time.advance(1_000),
    );
    expect(model.status().state).toBe('ready');
    expect(problems).toEqual([]);
  });
});

describe('a member that is drained', () => {
  test('finishes what it has and gets nothing new, until that ends', async () => {
    const [one, two] = [await member(), await member()];
    const { ask, model } = world([one, two]);
    await untilAllAsked(ask, [one, two]);
    const held: (() => void)[] = [];
    one.behaviour = (_received, response) => {
      held.push(() => void response.end(YES));
    };
    const both = [ask(), ask()];
    await until(() => held.length === 1);
    model.setDraining([one.address]);
    const before = asked(one);
    for (let request = 0; request < 4; request++) await ask();
    expect(asked(one)).toBe(before);
    held[0]?.();
    for (const answer of await Promise.all(both)) expect(answer.input_tokens).toBe(7);
    model.setDraining([one.address, two.address]);
    expect(await ask().catch((error: unknown) => error)).toBeInstanceOf(ModelUnavailable);
    expect(model.status()).toEqual({ state: 'cold', load_error: 'No upstream gets requests.' });
    one.behaviour = answering(200, YES);
    model.setDraining([two.address]);
    await ask();
    expect(asked(one)).toBe(before + 1);
  });

  test('is not tried while it is drained, and at once when that ends', async () => {
    const one = await member();
    const { ask, failing, model, time } = world([one]);
    await ask();
    const held: (() => void)[] = [];
    one.behaviour = (...request) => {
      held.push(() => void answering(500, '{}')(...request));
    };
    const failures = [failing(), failing(), failing()];
    await until(() => held.length === 3);
    model.setDraining([one.address]);
    for (const end of held) end();
    await Promise.all(failures);
    time.advance(60_000);
    expect(model.members()).toMatchObject([{ breaker: 'open', failures: 3 }]);
    model.setDraining([]);
    expect(model.members()).toMatchObject([{ breaker: 'half_open', failures: 3 }]);
    await until(() => held.length === 4);
    one.behaviour = answering(200, YES);
    held[3]?.();
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    time.advance(1_000);
    expect((await ask()).input_tokens).toBe(7);
  });
});

describe('the model of a member', () => {
  const listing = (...data: readonly object[]) => answering(200, JSON.stringify({ data }));
  const measured = async (one: TestMember) => {
    const { model } = world([one]);
    return (await model.measure(await model.plan(INPUT), { scope: 'test' })).fingerprint;
  };
  const calibrationFor = (fingerprint: string | null): UpstreamCalibration => {
    const buckets = [{ most_options: 255, temperature: 2 }];
    const temperatures = { noul: 2, choice: buckets, score: buckets };
    const fitted = { cases_sha256: '0'.repeat(64), records: 1, questions: 1 };
    return {
      fingerprint: fingerprint ?? '',
      temperatures: { fast: temperatures, consistent: temperatures },
      fitted_on: { fast: fitted, consistent: fitted },
    };
  };

  test('is the one that its answers name, whatever else its list has', async () => {
    const one = await member();
    const other = { id: 'other', version: 1 };
    one.onList = listing(other);
    const alone = await measured(one);
    one.onList = listing({ id: 'alpha', version: 1 }, other);
    expect(await measured(one)).toBe(alone);
    one.onList = listing({ id: 'alpha', version: 1 }, { ...other, version: 2 });
    expect(await measured(one)).not.toBe(alone);
  });

  test('is known for an answer that comes while the member is on trial again', async () => {
    const one = await member();
    const { ask, failing, model, problems } = world([one]);
    const [[plain = Number.NaN] = []] = (await ask()).scores;
    model.setCalibration(calibrationFor(await measured(one)));
    const held: (() => void)[] = [];
    one.behaviour = (_received, response) => {
      held.push(() => void response.end(YES));
    };
    const slow = ask();
    await until(() => held.length === 1);
    one.behaviour = (received, response, forward) =>
      (received.body.includes(RECORD) ? answering(500, '{}') : hanging)(received, response, forward);
    for (let request = 0; request < 3; request++) await failing();
    await until(() => one.received.at(-1)?.body.includes(RECORD) === false);
    held[0]?.();
    expect((await slow).scores).toEqual([[expect.closeTo(plain / 2, 9)]]);
    expect(problems).toEqual([]);
  });

  test('that is unknown leaves answers without calibration, which is told once', async () => {
    const one = await member();
    one.onList = answering(500, '{}');
    const { ask, problems } = world([one], { calibration: calibrationFor('1'.repeat(64)) });
    for (let request = 0; request < 2; request++) expect((await ask()).input_tokens).toBe(7);
    expect(problems).toMatchObject([
      { message: expect.stringContaining('do not say which model they have') },
    ]);
  });
});

describe('tokens', () => {
  test('are those that the member says, and an estimate where it says nothing', async () => {
    const one = await member();
    const { ask } = world([one]);
    expect((await ask()).input_tokens).toBe(7);
    one.behaviour = answering(200, YES.replace('"input_tokens":7,', ''));
    const { input_tokens } = await ask();
    expect(input_tokens).toBeGreaterThan(7);
    expect((await ask()).input_tokens).toBe(input_tokens);
  });

  test('are never more than the plan says: what a member read beyond that is reported', async () => {
    const one = await member();
    const { ask, model, problems } = world([one]);
    await ask();
    one.behaviour = answering(200, YES.replace('"input_tokens":7,', '"input_tokens":1000000,'));
    const { input_tokens } = await model.plan(INPUT);
    expect((await ask()).input_tokens).toBe(input_tokens);
    expect(problems).toMatchObject([{ name: 'UpstreamFailed', message: expect.stringContaining('1000000') }]);
  });
});

describe('what members are sent', () => {
  test('has the token of the file as it is now, which is in no message', async () => {
    const token_file = join(directory, 'token');
    writeFileSync(token_file, 'first-secret\n');
    const one = await member();
    const { ask, time, model } = world([one], { token_file });
    await ask();
    expect(new Set(one.received.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer first-secret']),
    );
    writeFileSync(token_file, 'second-secret\n');
    const listed: (string | undefined)[] = [];
    one.onList = (received, response) => {
      listed.push(received.authorization);
      response.end('{}');
    };
    time.advance(5_000);
    await until(() => listed.length === 1);
    await ask();
    expect(listed).toEqual(['Bearer second-secret']);
    expect(one.received.at(-1)?.authorization).toBe('Bearer second-secret');
    expect(JSON.stringify(model.status())).not.toContain('secret');
  });

  test('has the token of the member, where it has one of its own, and the pool’s elsewhere', async () => {
    const [token_file, own] = [join(directory, 'shared'), join(directory, 'own')];
    writeFileSync(token_file, 'shared-secret');
    writeFileSync(own, 'own-secret');
    const [one, two] = [await member(), await member()];
    const { ask } = world([one, two], { token_file, members: { [two.address]: { token_file: own } } });
    await untilAllAsked(ask, [one, two]);
    const sent = ({ received }: TestMember) => new Set(received.map(({ authorization }) => authorization));
    expect([sent(one), sent(two)]).toEqual([
      new Set(['Bearer shared-secret']),
      new Set(['Bearer own-secret']),
    ]);
  });

  test('is nothing while a file cannot be read, which the message names', async () => {
    const one = await member();
    const token_file = join(directory, 'missing');
    const { failing, model } = world([one], { token_file });
    expect(await failing()).toBeInstanceOf(ModelUnavailable);
    expect(one.received).toEqual([]);
    expect(model.status().load_error).toBe(`${token_file} cannot be read (ENOENT).`);
  });

  test('is what a file said last where it cannot be read any more, which is told once and no fault of a member', async () => {
    const token_file = join(directory, 'rotated');
    writeFileSync(token_file, 'rotated-secret');
    const one = await member();
    let lists = 0;
    one.onList = (...request) => {
      lists += 1;
      return answering(200, '{}')(...request);
    };
    const { ask, model, time, problems } = world([one], { token_file });
    await ask();
    rmSync(token_file);
    await until(
      () => lists >= 4,
      () => time.advance(1_000),
    );
    expect((await ask()).input_tokens).toBe(7);
    expect(one.received.at(-1)?.authorization).toBe('Bearer rotated-secret');
    expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 0 }]);
    expect(problems).toMatchObject([{ message: `${token_file} cannot be read (ENOENT).` }]);
    // Also by a trial, such as that of a member whose drain has ended.
    model.setDraining([one.address]);
    model.setDraining([]);
    expect((await ask()).input_tokens).toBe(7);
  });

  test('is something as soon as a file can be read, however long that took', async () => {
    const token_file = join(directory, 'late');
    const members = [await member(), await member()];
    const { ask, failing, model, time, problems } = world(members, { token_file });
    for (let second = 0; second < 8; second++) {
      expect(await failing()).toBeInstanceOf(ModelUnavailable);
      time.advance(1_000);
    }
    expect(model.members()).toMatchObject([{ failures: 0 }, { failures: 0 }]);
    expect(problems).toHaveLength(1);
    writeFileSync(token_file, 'late-secret');
    await until(() => model.members().every(({ breaker }) => breaker !== 'half_open'));
    time.advance(1_000);
    expect((await ask()).input_tokens).toBe(7);
  });

  test('goes nowhere else: a redirect is no answer', async () => {
    const other = await member();
    const one = await member();
    const { ask, failing } = world([one]);
    await ask();
    one.behaviour = answering(307, '', { location: `${other.address}/v1/systemone` });
    expect(await failing()).toMatchObject({ failure: 'refused', status: 307 });
    expect(other.received).toEqual([]);
  });

  test('goes past a proxy that the environment names', async () => {
    const proxy = await member();
    const one = await member();
    const before = process.env.HTTP_PROXY;
    process.env.HTTP_PROXY = proxy.address;
    try {
      await world([one]).ask();
    } finally {
      if (before === undefined) delete process.env.HTTP_PROXY;
      else process.env.HTTP_PROXY = before;
    }
    expect([asked(one), proxy.received]).toEqual([1, []]);
  });

  /** Starts a server with that certificate, which reports each request. */
  function startTls(files: CertificateFiles, onRequest: () => void) {
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { cert: Bun.file(files.certificate), key: Bun.file(files.key) },
      fetch: () => {
        onRequest();
        return new Response(YES);
      },
    });
    ends.push(() => server.stop(true));
    return { address: `https://127.0.0.1:${server.port}` };
  }

  test.skipIf(!hasOpenssl)(
    'goes by the certificates that their file had last, while it has none or a part of one',
    async () => {
      const files = makeCertificate(directory, 'renewed');
      const whole = readFileSync(files.certificate, 'utf8');
      const other = readFileSync(makeCertificate(directory, 'beside').certificate, 'utf8');
      let requests = 0;
      const there = startTls(files, () => {
        requests += 1;
      });
      const ca_file = join(directory, 'renewed.pem');
      writeFileSync(ca_file, '');
      const { ask, failing, model, time, problems } = world([there], { ca_file });
      expect(await failing()).toBeInstanceOf(ModelUnavailable);
      expect(model.status().load_error).toBe(`${ca_file} must hold certificates (PEM).`);
      writeFileSync(ca_file, whole);
      time.advance(1_000);
      await ask();
      const half = whole.slice(0, whole.length / 2);
      for (const part of [half, `${other}${half}`]) {
        writeFileSync(ca_file, part);
        const before = requests;
        await until(
          () => requests > before,
          () => time.advance(1_000),
        );
        expect((await ask()).input_tokens).toBe(7);
      }
      expect(model.members()).toMatchObject([{ breaker: 'closed', failures: 0 }]);
      expect(problems).toHaveLength(2);
    },
  );

  test.skipIf(!hasOpenssl)(
    'goes over TLS to a server that the given certificates vouch for, and to no other',
    async () => {
      const files = makeCertificate(directory, 'upstream');
      const others = makeCertificate(directory, 'other');
      let requests = 0;
      const there = startTls(files, () => {
        requests += 1;
      });
      expect((await world([there], { ca_file: files.certificate }).ask()).input_tokens).toBe(7);
      const before = requests;
      for (const ca_file of [null, others.certificate]) {
        expect(await world([there], { ca_file }).failing()).toBeInstanceOf(ModelUnavailable);
      }
      expect(requests).toBe(before);
    },
  );

  test('no failure has a word of the record, whatever a member sends back', async () => {
    const one = await member(answering(200, YES));
    const { ask, failing, problems } = world([one]);
    await ask();
    for (const behaviour of [
      echoing,
      answering(200, JSON.stringify({ answers: { [RECORD]: RECORD } })),
      answering(200, `"${RECORD}`),
      answering(400, RECORD),
      answering(503, RECORD),
    ]) {
      one.behaviour = behaviour;
      const error = await failing();
      for (let cause = error; cause instanceof Error; cause = cause.cause) {
        expect(`${cause.message} ${cause.stack} ${JSON.stringify(cause)}`).not.toContain(RECORD);
      }
      expect(Bun.inspect(problems)).not.toContain(RECORD);
    }
  });
});
