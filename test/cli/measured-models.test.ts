import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import type { Results } from '../../src/eval/report.ts';
import type { Question, QuestionType } from '../../src/questions/question.ts';
import { ENOUGH_NOULS } from '../eval/support.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { loadOnCpu, TINY_CHAT, TINY_MARKERS } from '../native/support/models.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { shiftEntry, tuningOf, vectorEntry } from '../tuning/strong-tuning.ts';
import { answering, type Behaviour, TestMember } from '../upstreams/support.ts';
import { asLlamaServer } from '../upstreams/token-servers.ts';
import { expectRefused, field, firstAsProcess, initializeData } from './support.ts';

setDefaultTimeout(4 * MODEL_TEST_TIMEOUT_MS);

const CASES = new URL('../../src/eval/example-cases.jsonl', import.meta.url).pathname;
const CPU = ['--gpu', 'none', '--threads', '1'];
const listOf = (model: string) => answering(200, JSON.stringify({ data: [{ id: model, created: 7 }] }));

const directory = temporaryDirectory();
const data = join(directory.path, 'data');
const chat = join(directory.path, 'chat.gguf');
const markers = join(directory.path, 'markers.gguf');
const labels = join(directory.path, 'labels.jsonl');
let evaluator: PlanEvaluator;
let tokens: TestMember;
let decisions: TestMember;
beforeAll(async () => {
  await writeTinyModel(chat, { ...TINY_CHAT, context_tokens: 4_096 });
  await writeTinyModel(markers, TINY_MARKERS);
  await writeFile(labels, ENOUGH_NOULS);
  const loaded = await loadOnCpu(chat);
  evaluator = loaded.evaluator;
  tokens = await TestMember.start();
  tokens.behaviour = asLlamaServer({ evaluator, texts: loaded.facts.vocabulary.texts });
  tokens.onList = listOf('first');
  decisions = await TestMember.start();
  decisions.behaviour = deciding(false);
  decisions.onList = listOf('first');
  await initializeData(data);
});
afterAll(async () => {
  await tokens.kill();
  await decisions.kill();
  await evaluator.close();
  directory.remove();
});

/** A server of decisions to which the first of all options is always the likeliest, or certain. */
const deciding =
  (isCertain: boolean): Behaviour =>
  ({ body }, response) => {
    const { questions } = JSON.parse(body);
    const answers = Object.entries<{ type: string; criteria: object }>(questions ?? {}).map(([id, asked]) => {
      if (asked.type === 'noul') return [id, { type: 'noul', noul: isCertain ? 1 : 0.6 }] as const;
      const names =
        asked.type === 'score'
          ? Object.keys([...Object.values(asked.criteria)])
          : Object.keys(asked.criteria);
      const rest = isCertain ? 0 : 1 / (names.length + 1);
      const shares = names.map(
        (name, index) => [name, index === 0 ? 1 - rest * (names.length - 1) : rest] as const,
      );
      const probabilities = Object.fromEntries(shares);
      if (asked.type === 'choice') return [id, { type: 'choice', choice: names[0], probabilities }] as const;
      const score = shares.reduce((sum, [, share], level) => sum + share * level, 0);
      return [id, { type: 'score', score, probabilities }] as const;
    });
    response.end(
      JSON.stringify({ answers: Object.fromEntries(answers), usage: { input_tokens: 11, output_tokens: 0 } }),
    );
  };

const { command, commandJson } = firstAsProcess();
const model = (...words: string[]) => command(['model', ...words, '--data', data, ...CPU]);
async function modelOf(id: string): Promise<unknown> {
  const models = await commandJson(['model', 'list', '--data', data]);
  return (Array.isArray(models) ? models : []).find((one) => field(one, 'id') === id);
}
async function report(id: string, output: string) {
  const { code, stdout, stderr } = await command(
    ['eval', CASES, '--model', id, '--data', data, '--output', output, '--probes', '0', '--json', ...CPU],
    { cwd: directory.path },
  );
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
function ofType({ types }: Results, type: QuestionType) {
  const found = types.find((one) => one.type === type);
  if (found === undefined) throw new Error(`the report has no ${type}`);
  return found;
}

/** A question of the cases. */
const LAMP: Question = {
  type: 'noul',
  instructions: 'Is there a lamp in the order?',
  yes: undefined,
  no: undefined,
};

/** The tuning of one yes/no question of the cases, on the weights of a report. */
function lampTuning(
  facts: { weights_sha256: string; profile: string },
  shift: readonly [no: number, yes: number],
  model_id = 'weights',
): string {
  return tuningOf(facts, [shiftEntry(LAMP, shift)], { model: model_id });
}
const calibrate = (id: string, work: string) =>
  command(['calibrate', labels, '--model', id, '--data', data, '--work', work, ...CPU], {
    cwd: directory.path,
  });

describe('tds model add --protocol llama-server', () => {
  test('needs the vocabulary by which plans are made, which a server of decisions does not', async () => {
    const words = ['--upstream', tokens.address, '--price', '1'];
    expectRefused(
      await model('add', 'bad', ...words, '--protocol', 'llama-server'),
      'Upstreams of --protocol llama-server are sent tokens: give --vocabulary with the GGUF file of their model.',
    );
    expectRefused(
      await model('add', 'bad', ...words, '--vocabulary', chat),
      'Upstreams of --protocol systemone make their own plans: leave --vocabulary away.',
    );
    const nowhere = join(directory.path, 'nowhere.gguf');
    expect(
      await model('add', 'bad', ...words, '--protocol', 'openai', '--vocabulary', nowhere),
    ).toMatchObject({ code: 1, stderr: expect.stringContaining(`${nowhere} is missing`) });
    expect(await modelOf('bad')).toBeUndefined();
  });

  test('asks the server, and keeps what the vocabulary was', async () => {
    const words = ['--upstream', tokens.address, '--protocol', 'llama-server', '--price', '1'];
    expect(await model('add', 'tokens', ...words, '--vocabulary', chat)).toEqual({
      code: 0,
      stdout: 'Added tokens, which is open.\n',
      stderr: '',
    });
    expect(await modelOf('tokens')).toMatchObject({
      status: 'live',
      context_tokens: 4_096,
      upstreams: {
        protocol: 'llama-server',
        vocabulary: {
          path: chat,
          sha256: new Bun.CryptoHasher('sha256').update(await Bun.file(chat).bytes()).digest('hex'),
          profile: 'codes-v1',
        },
      },
    });
    const findings = await commandJson(['doctor', '--data', data, '--gpu', 'none', '--model', markers]);
    expect(findings).toContainEqual({
      subject: 'upstreams of tokens',
      state: 'ok',
      detail: `${tokens.address} answer`,
    });
  });

  test('says why a server cannot be asked so', async () => {
    const words = ['--upstream', decisions.address, '--price', '1', '--vocabulary', chat];
    const refused = await model('add', 'bad', ...words, '--protocol', 'openai');
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `${decisions.address}: It does not return the probabilities of the wanted tokens.\n`,
      ),
    });
  });
});

describe('tds eval and tds calibrate --model ID', () => {
  test('ask a model of weights that the catalog has', async () => {
    expect(await model('add', 'weights', '--weights', markers, '--price', '1')).toMatchObject({ code: 0 });
    const by_id = await report('weights', 'by-id');
    const by_path = await report(markers, 'by-path');
    expect(by_id.model).toEqual(by_path.model);
    expect(by_id.uncalibrated).toEqual(by_path.uncalibrated);
  });

  test('ask the base of a tuned model, and measure its corrections', async () => {
    const base = await report('weights', 'by-id');
    const tunedTo = async (id: string, shift: readonly [no: number, yes: number]) => {
      const tuning = join(directory.path, `${id}.tuning`);
      await writeFile(tuning, lampTuning(base.model, shift));
      expect(await model('add', id, '--tuning', tuning)).toMatchObject({ code: 0 });
      // The scores are the base's, so that nothing is asked again.
      return await report(id, 'by-id');
    };
    const yes = await tunedTo('lamp-yes', [0, 60]);
    const no = await tunedTo('lamp-no', [60, 0]);
    for (const tuned of [yes, no]) {
      expect(tuned.uncalibrated).toEqual(base.uncalibrated);
      expect(tuned).toMatchObject({ tuned: true, model: base.model });
      expect(ofType(tuned.calibrated, 'choice')).toEqual(ofType(base.uncalibrated, 'choice'));
    }
    const right = ({ calibrated }: { readonly calibrated: Results }) => {
      const { questions, metrics } = ofType(calibrated, 'noul');
      return questions * metrics.accuracy.value;
    };
    // The order with a lamp is in the cases once.
    expect(right(yes) - right(no)).toBeCloseTo(1);
    for (const [deed, words] of [
      ['calibrate', ['calibrate', CASES, '--work', 'by-id']],
      ['tune', ['tune', CASES, '--work', 'by-id', '--output', 'again.tuning']],
    ] as const) {
      expectRefused(
        await command([...words, '--model', 'lamp-yes', '--data', data, ...CPU], { cwd: directory.path }),
        `lamp-yes is a tuned model: ${deed} its base instead.`,
      );
    }
  });

  test.each([
    ['tokens', 'llama-server', 'codes-v1', () => tokens],
    ['decisions', 'systemone', 'systemone', () => decisions],
  ] as const)(
    'fit a model of upstreams, %s, and the fit is theirs alone',
    async (id, protocol, profile, upstream) => {
      if (id === 'decisions') {
        const added = await model('add', id, '--upstream', upstream().address, '--price', '1');
        expect(added).toMatchObject({ code: 0 });
      }
      const before = await report(id, id);
      expect(before.model).toMatchObject({ evaluator: protocol, profile });
      expect(before.cases).toMatchObject({ evaluated: 12, refused: 0 });
      expect(before.calibrated).toBeNull();
      const fitted = await calibrate(id, id);
      expect(fitted).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`Calibration: of ${id} in the catalog`),
      });
      expect(field(field(await modelOf(id), 'upstreams'), 'calibration')).toMatchObject({
        fingerprint: before.model.weights_sha256,
      });
      const after = await report(id, id);
      expect(after.uncalibrated).toEqual(before.uncalibrated);
      expect(after.calibrated).not.toBeNull();
      const lamp = join(directory.path, `${id}-lamp.tuning`);
      await writeFile(lamp, lampTuning(before.model, [0, 60], id));
      expect(await model('add', `${id}-lamp`, '--tuning', lamp)).toMatchObject({ code: 0 });
      // The scores are the base's, so that nothing is asked again.
      const tuned = await report(`${id}-lamp`, id);
      expect(tuned.uncalibrated).toEqual(before.uncalibrated);
      expect(ofType(tuned.calibrated, 'noul')).not.toEqual(ofType(after.calibrated, 'noul'));
      expect(ofType(tuned.calibrated, 'choice')).toEqual(ofType(after.calibrated, 'choice'));
      await writeFile(lamp, tuningOf(before.model, [vectorEntry(LAMP, 2)], { model: id }));
      expectRefused(
        await model('add', 'bad', '--tuning', lamp),
        `${lamp} has vectors on hidden states, which the upstreams of ${id} do not give: tune again by "tds tune --model ${id}".`,
      );
      upstream().onList = listOf('second');
      const other = await report(id, `${id}-second`);
      await writeFile(lamp, lampTuning(before.model, [0, 60], id));
      expect(await model('add', 'bad', '--tuning', lamp)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('was fitted on weights that no model of the catalog has'),
      });
      expect(other.calibrated).toBeNull();
      expect(other.model.weights_sha256).not.toBe(before.model.weights_sha256);
      upstream().onList = listOf('first');
    },
  );

  test('and tds tune fit a server that is certain of all that it answers, from one folder', async () => {
    const refund = { type: 'noul', instructions: 'Is a refund asked for?' };
    const team = { type: 'choice', instructions: 'Which team?', criteria: { sales: null, billing: null } };
    const records = Array.from({ length: 120 }, (_, index) => ({
      src: 'shop',
      state: `Order ${index}.`,
      questions: [
        { ...refund, answer: index % 6 === 0 },
        { ...team, answer: index % 6 === 0 ? 'sales' : 'billing' },
      ],
    }));
    const cases = join(directory.path, 'certain.jsonl');
    await writeFile(cases, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    const certain = await TestMember.start();
    certain.behaviour = deciding(true);
    certain.onList = listOf('certain');
    expect(await model('add', 'certain', '--upstream', certain.address, '--price', '1')).toMatchObject({
      code: 0,
    });
    const words = [cases, '--model', 'certain', '--data', data, ...CPU];
    const run = (...more: string[]) => command([...more, ...words], { cwd: directory.path });
    expect(await run('eval', '--output', 'certain', '--probes', '0')).toMatchObject({ code: 0 });
    expect(await run('calibrate', '--work', 'certain')).toMatchObject({ code: 0 });
    expect(await run('tune', '--work', 'certain', '--output', 'certain.tuning')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('with 2 corrections'),
    });
    await certain.kill();
  });

  test('say in one sentence that no upstream answers', async () => {
    await tokens.kill();
    const { code, stderr } = await calibrate('tokens', 'nobody');
    await tokens.revive();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^tds: The upstreams of tokens do not answer: [^\n]+ cannot be reached \(\w+\)\.\n$/,
    );
  });
});
