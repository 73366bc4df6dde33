import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join, relative } from 'node:path';
import { verifyWeights } from '../../native/engine.ts';
import { expectDecision } from '../contract/expectations.ts';
import { withMetadata, writeTinyModel } from '../native/support/gguf.ts';
import { TINY_CHAT, TINY_MARKERS } from '../native/support/models.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { firstAsProcess, initializeData, tds } from './support.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const ON_CPU = ['--gpu', 'none', '--threads', '1'];

const root = temporaryDirectory();
const data = join(root.path, 'data');
const chat = join(root.path, 'chat.gguf');
const markers = join(root.path, 'markers.gguf');
afterAll(() => root.remove());
beforeAll(async () => {
  await writeTinyModel(chat, TINY_CHAT);
  await writeTinyModel(markers, TINY_MARKERS);
  await initializeData(data);
});

const { command, commandJson } = firstAsProcess();
const model = (...words: string[]) => command(['model', ...words, '--data', data]);
/** A process, whose standard error the process that tries the weights has, too. */
const add = (id: string, ...words: string[]) =>
  tds(['model', 'add', id, ...words, ...ON_CPU, '--data', data]);
const listed = () => commandJson(['model', 'list', '--data', data]);

describe('tds model add --weights', () => {
  test('loads the weights, asks them, and then the model is open, with what they are', async () => {
    const added = await add('decision-2', '--weights', relative(process.cwd(), chat), '--price', '0.75');
    expect(added).toMatchObject({ code: 0, stdout: 'Added decision-2, which is open.\n' });
    expect(added.stderr).toBe(`Loading ${chat}.\nSending it a health probe by codes-v1 on cpu.\n`);
    expect(await listed()).toContainEqual({
      id: 'decision-2',
      kind: 'decision',
      status: 'live',
      description: 'Answers typed questions about one record with a probability for every option.',
      context_tokens: 2_048,
      input_price_micros_per_million_tokens: 750_000,
      released_at_ms: expect.any(Number),
      weights: chat,
      weights_sha256: (await verifyWeights(chat)).sha256,
      profile: 'codes-v1',
      aliases: [],
      // No service runs.
      state: null,
      drift_index: null,
      load_error: null,
      memory_bytes: null,
    });
    const { stdout } = await model('list');
    expect(stdout).toMatch(
      new RegExp(`decision-2 +decision +live +- +- +${chat} +codes-v1 +2048 +0\\.750000`),
    );
  });

  test('says that a chat template cannot be used', async () => {
    const path = join(root.path, 'broken.gguf');
    await writeTinyModel(path, { ...TINY_CHAT, chat_template: '{% for %}' });
    const added = await add('untold', '--weights', path, '--closed');
    expect(added.code).toBe(0);
    expect(added.stderr).toContain('The file has no chat template that can be used');
    await model('remove', 'untold');
  });

  test('--closed keeps it closed until it is opened; a context of its own is kept', async () => {
    const words = ['--weights', markers, '--price', '2', '--context', '500', '--description', 'Small.'];
    expect(await add('decision-3', ...words, '--closed')).toMatchObject({
      code: 0,
      stdout: 'Added decision-3, which is closed.\n',
    });
    const row = { id: 'decision-3', description: 'Small.', context_tokens: 500, weights: markers };
    expect(await listed()).toContainEqual(
      expect.objectContaining({ ...row, status: 'coming_soon', released_at_ms: null }),
    );
    expect(await model('open', 'decision-3')).toMatchObject({ code: 0 });
    expect(await listed()).toContainEqual(expect.objectContaining({ ...row, status: 'live' }));
  });

  const broken = join(root.path, 'broken.gguf');
  const ending = join(root.path, 'ending.gguf');
  for (const [name, words, said] of [
    ['no file', ['--weights', join(root.path, 'nowhere.gguf'), '--price', '1'], 'is missing'],
    ['a file that is no model', ['--weights', import.meta.path, '--price', '1'], 'is not a GGUF file'],
    [
      'a model over which llama.cpp ends its process',
      ['--weights', ending, '--price', '1'],
      `The model ${ending} cannot be served (the process that loaded it was ended by SIGABRT)`,
    ],
    ['a model that is cut', ['--weights', broken, '--price', '1'], broken],
    ['no price', ['--weights', chat], 'give --price'],
    ['a price above the bound', ['--weights', chat, '--price', '1001'], 'at most $1000'],
    [
      'a context that the model does not have',
      ['--weights', chat, '--price', '1', '--context', '2049'],
      '2048',
    ],
    [
      'a context in which nothing can be answered',
      ['--weights', chat, '--price', '1', '--context', '4'],
      'does not answer a health probe',
    ],
  ] as const) {
    test(`${name}: one sentence, and nothing is added`, async () => {
      const whole = await Bun.file(chat).bytes();
      await Bun.write(ending, withMetadata(whole, 'llama.block_count', 1_000));
      await Bun.write(broken, whole.subarray(0, 60_000));
      const before = await listed();
      const { code, stdout, stderr } = await add('decision-9', ...words);
      expect([code, stdout]).toEqual([1, '']);
      const last = stderr.trimEnd().split('\n').at(-1);
      expect(last).toStartWith('tds: ');
      expect(last).toContain(said);
      expect(await listed()).toEqual(before);
    });
  }

  test('an id that is taken, or cannot be one, is refused before the weights are read', async () => {
    for (const id of ['decision-1', 'two words', '../x']) {
      const { code, stderr } = await add(id, '--weights', join(root.path, 'nowhere.gguf'), '--price', '1');
      expect(code).toBe(1);
      expect(stderr).toMatch(/^tds: [^\n]+\.\n$/);
      expect(stderr).not.toContain('nowhere');
    }
    const refused = await add('chat-2', 'chat', '--weights', chat, '--price', '1');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
  });
});

describe('tds model remove', () => {
  test('takes the model and its aliases away; not one that comes with the program', async () => {
    await add('decision-4', '--weights', chat, '--price', '1');
    await model('alias', 'other', 'decision-4');
    expect(await model('remove', 'decision-4')).toMatchObject({
      code: 0,
      stdout: 'decision-4 is removed.\n',
    });
    expect(JSON.stringify(await listed())).not.toMatch(/decision-4|other/);
    for (const id of ['decision-1', 'chat-1', 'decision-4']) {
      const { code, stderr } = await model('remove', id);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^tds: [^\n]+\.\n$/);
    }
  });
});

describe('a running server', () => {
  let server: ChildServer;
  afterAll(() => server.stop());

  const ask = (id: string) =>
    fetch(`${server.address}/v1/decisions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}` },
      body: JSON.stringify({ ...SMALL_REQUEST, model: id }),
    });
  async function cost(id: string): Promise<unknown> {
    const { model: answered_by, usage } = await expectDecision(await ask(id));
    const micros_per_token = (usage.cost_usd / usage.input_tokens) * 1e6;
    return { answered_by, dollars_per_million: Math.round(micros_per_token * 10) / 10 };
  }

  test('answers for a model that is added beside it, at its price, and no more when it is removed', async () => {
    const own = join(root.path, 'served');
    server = await startChildServer(own, root.path);
    const beside = (...words: string[]) => commandJson(['model', ...words, '--data', own]);
    expect((await ask('decision-2')).status).toBe(404);
    const words = ['--weights', chat, '--price', '40', ...ON_CPU, '--data', own];
    expect(await tds(['model', 'add', 'decision-2', ...words])).toMatchObject({ code: 0 });
    expect(await cost('decision-2')).toEqual({ answered_by: 'decision-2', dollars_per_million: 40 });
    await beside('price', 'decision-2', '80');
    expect(await cost('decision-2')).toEqual({ answered_by: 'decision-2', dollars_per_million: 80 });
    expect(await cost('decision-1')).toMatchObject({ answered_by: 'decision-1' });
    await beside('remove', 'decision-2');
    expect((await ask('decision-2')).status).toBe(404);
    expect(await cost('decision-1')).toMatchObject({ answered_by: 'decision-1' });
  });
});
