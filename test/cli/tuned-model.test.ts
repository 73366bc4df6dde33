import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { answerCounts } from '../../db/sqlite/schema.ts';
import { EMBEDDED_WEIGHTS, verifyWeights } from '../../native/engine.ts';
import { dayOf } from '../../src/time/days.ts';
import { writeTuning } from '../../src/tuning/tuning-file.ts';
import { ENOUGH_NOULS } from '../eval/support.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { ChildServer } from '../support/child-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectRefused, firstAsProcess, initializeData, textField } from './support.ts';

// Each command is a process, on cores that may be shared.
setDefaultTimeout(120_000);

const { command, commandJson } = firstAsProcess();
const directory = temporaryDirectory();
const data = join(directory.path, 'data');
const tuning = join(directory.path, 'support.tuning');
let organization_id: string;
beforeAll(async () => {
  const weights = join(directory.path, 'tiny.gguf');
  await writeTinyModel(weights, TINY_MARKERS);
  await initializeData(data);
  organization_id = textField(await commandJson(['org', 'create', 'Acme', '--data', data]), 'id');
  const on_cpu = ['--gpu', 'none', '--threads', '1'];
  await command(['model', 'add', 'tiny', '--weights', weights, '--price', '0.25', '--data', data, ...on_cpu]);
  await writeFile(tuning, textFor((await verifyWeights(weights)).sha256));
});
afterAll(() => directory.remove());

function textFor(weights_sha256: string, profile = 'markers-v1+steady-v3'): string {
  return writeTuning({
    header: {
      weights_sha256,
      profile,
      model: null,
      hash_key: [1, 2],
      fitted_on: { cases_sha256: 'c'.repeat(64), records: 20, seed: 1 },
    },
    entries: [
      {
        question: { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined },
        mode: 'fast',
        scale: 1,
        shift: [1, 0],
        words: null,
        vector: null,
        labels: 20,
        accuracy: { before: 0.5, after: 0.9 },
        loss: { before: 0.7, after: 0.3 },
        answer_shares: [0.5, 0.5],
      },
    ],
  });
}

const noModelHas = (path: string, weights_sha256: string, profile = 'markers-v1+steady-v3') =>
  `${path} was fitted on weights that no model of the catalog has (SHA-256 ${weights_sha256} by ${profile}): add the model first, give the --model of "tds serve", or tune again.`;
const add = (...words: string[]) => command(['model', 'add', ...words, '--data', data]);
const listed = () => commandJson(['model', 'list', '--data', data]);

describe('tds model add --tuning', () => {
  test('puts the model beside the one that it was fitted on, for one organization, at the base’s price', async () => {
    expect(await add('support-1', '--tuning', tuning, '--organization', 'Acme')).toEqual({
      code: 0,
      stdout: 'Added support-1, which is open.\n',
      stderr: '',
    });
    expect(await listed()).toContainEqual(
      expect.objectContaining({
        id: 'support-1',
        status: 'live',
        base_id: 'tiny',
        organization_id,
        input_price_micros_per_million_tokens: 250_000,
        drift_index: null,
      }),
    );
    const db = openDatabase(join(data, 'tds.sqlite'));
    const day = dayOf(Date.now());
    const row = { model_id: 'support-1', day, question: 0, class: 1, answers: 500 };
    db.insert(answerCounts).values(row).run();
    db.$client.close();
    // All answers are yes, of which half were at tuning.
    expect(await listed()).toContainEqual(
      expect.objectContaining({ id: 'support-1', drift_index: expect.closeTo(1.57, 1) }),
    );
    const { stdout } = await command(['model', 'list', '--data', data]);
    expect(stdout).toMatch(
      new RegExp(`^support-1 .*tuning of tiny, for ${organization_id} .* 1\\.\\d\\d *$`, 'm'),
    );
    expectRefused(await add('support-1', '--tuning', tuning), 'There is a model support-1 already.');
    expectRefused(
      await command(['model', 'remove', 'tiny', '--data', data]),
      'support-1 is a tuning of tiny: remove it first.',
    );
  });

  test('of the default model goes by the weights that it is served with', async () => {
    const served = join(directory.path, 'served.gguf');
    await writeTinyModel(served, { ...TINY_MARKERS, seed: 2 });
    const path = join(directory.path, 'served.tuning');
    const { sha256 } = await verifyWeights(served);
    await writeFile(path, textFor(sha256));
    expectRefused(await add('served-0', '--tuning', path), noModelHas(path, sha256));
    expect(await add('served-1', '--tuning', path, '--model', served)).toMatchObject({ code: 0 });
    const env = { TDS_MODEL: served };
    const by_variable = ['model', 'add', 'served-2', '--tuning', path, '--data', data];
    expect(await command(by_variable, { env })).toMatchObject({ code: 0 });
    expect(await listed()).toContainEqual(expect.objectContaining({ id: 'served-2', base_id: 'decision-1' }));
    const embedded = join(directory.path, 'embedded.tuning');
    const of_embedded = (await verifyWeights(EMBEDDED_WEIGHTS)).sha256;
    await writeFile(embedded, textFor(of_embedded));
    expectRefused(
      await add('served-3', '--tuning', embedded, '--model', served),
      noModelHas(embedded, of_embedded),
    );
    const cases = join(directory.path, 'cases.jsonl');
    await writeFile(cases, ENOUGH_NOULS);
    const measured = ['eval', cases, '--model', 'served-1', '--probes', '0', '--json', '--data', data];
    const on_cpu = ['--output', join(directory.path, 'evaluation'), '--gpu', 'none', '--threads', '1'];
    const { code, stdout } = await command([...measured, ...on_cpu], { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ tuned: true, model: { weights_sha256: sha256 } });
  });

  test('refuses what cannot be used with a sentence, and adds nothing', async () => {
    const before = await listed();
    const path = join(directory.path, 'other.tuning');
    const other = 'e'.repeat(64);
    // The embedded weights, whose profile is not in the catalog: a later program may ask them by another one.
    const embedded = (await verifyWeights(EMBEDDED_WEIGHTS)).sha256;
    const refusals: readonly (readonly [string, string])[] = [
      [textFor(other), noModelHas(path, other)],
      [textFor(embedded, 'markers-v1+steady-v2'), noModelHas(path, embedded, 'markers-v1+steady-v2')],
      [textFor(other).slice(0, -30), `${path} is not whole: copy it again, or tune again.`],
      ['{}', `${path} is not a tuning file.`],
    ];
    for (const [text, sentence] of refusals) {
      await writeFile(path, text);
      expectRefused(await add('support-2', '--tuning', path), sentence);
    }
    expectRefused(
      await add('support-2', '--tuning', tuning, '--organization', 'Nobody'),
      'There is no organization "Nobody".',
    );
    expectRefused(await add('support-2', '--organization', 'Acme'), 'Give --organization with --tuning.');
    expectRefused(
      await add('support-2', '--model', tuning),
      '--model goes with --tuning: the weights of a new model are --weights.',
    );
    expectRefused(
      await add('support-2', '--tuning', tuning, '--weights', 'embedded'),
      'Give one of --weights, --upstream and --tuning.',
    );
    expect(await listed()).toEqual(before);
  });
});

test('a start and a reload on other weights name the tuned models of decision-1 that do not fit them', async () => {
  using root = temporaryDirectory();
  const own = join(root.path, 'data');
  await initializeData(own);
  const [before, after] = [join(root.path, 'before.gguf'), join(root.path, 'after.gguf')];
  await writeTinyModel(before, { ...TINY_MARKERS, seed: 3 });
  await writeTinyModel(after, { ...TINY_MARKERS, seed: 4 });
  for (const [id, weights] of [
    ['tuned-before', before],
    ['tuned-after', after],
  ] as const) {
    const path = join(root.path, `${id}.tuning`);
    await writeFile(path, textFor((await verifyWeights(weights)).sha256));
    const added = ['model', 'add', id, '--tuning', path, '--model', weights, '--data', own];
    expect(await command(added)).toMatchObject({ code: 0 });
  }
  await using server = await new ChildServer(own, [], { model: after }).ready();
  await rename(before, after);
  const reloaded = ['model', 'reload', 'decision-1', '--gpu', 'none', '--data', own];
  expect(await command(reloaded)).toMatchObject({ code: 0 });
  expect(await server.stop()).toBe(0);
  const named = server
    .output()
    .split('\n')
    .filter((line) => line.includes('does not fit the weights'));
  expect(named.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', model: 'tuned-before', organization_id: null },
    { level: 'warn', model: 'tuned-after', organization_id: null },
  ]);
});

test('a reload of the base with other weights names the tuned models that do not fit them, and so does doctor', async () => {
  const on_cpu = ['--gpu', 'none', '--threads', '1', '--data', data];
  const [before, after] = ['before', 'after'].map((name) => join(directory.path, `${name}.gguf`)) as [
    string,
    string,
  ];
  await writeTinyModel(before, { ...TINY_MARKERS, words: [' before'] });
  await writeTinyModel(after, { ...TINY_MARKERS, words: [' after'] });
  expect((await command(['model', 'add', 'base', '--weights', before, '--price', '1', ...on_cpu])).code).toBe(
    0,
  );
  const fitted = join(directory.path, 'base.tuning');
  await writeFile(fitted, textFor((await verifyWeights(before)).sha256));
  expect((await add('of-base', '--tuning', fitted)).code).toBe(0);
  const doctor = async () => (await command(['doctor', ...on_cpu])).stdout;
  expect(await doctor()).not.toContain('tuning of of-base');
  const reload = (path: string) => command(['model', 'reload', 'base', '--weights', path, ...on_cpu]);
  const told = 'so that their tuned questions get 502: of-base.';
  expect((await reload(after)).stderr).toContain(told);
  expect(await doctor()).toContain('tuning of of-base');
  expect((await reload(before)).stderr).not.toContain(told);
  // The weights are in use whatever the look at the tunings finds.
  {
    using database = new Database(join(data, 'tds.sqlite'));
    database.run('ALTER TABLE model_tunings RENAME TO tunings_elsewhere');
  }
  const unread = await reload(after);
  {
    using database = new Database(join(data, 'tds.sqlite'));
    database.run('ALTER TABLE tunings_elsewhere RENAME TO model_tunings');
  }
  expect(unread).toMatchObject({ code: 0, stdout: expect.stringContaining('The weights of base are good') });
  expect(unread.stderr).toMatch(
    /^Which tuned models fit the new weights could not be read \([^\n]+\): [^\n]+\.$/m,
  );
  expect(await doctor()).toContain('tuning of of-base');
});
