import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { NOT_TUNED, seedCatalog } from '../../src/catalog/catalog.ts';
import type { CatalogModel, UpstreamPool } from '../../src/store/catalog-records.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, SHUFFLED } from './rows.ts';

const model = (id: string, values: Partial<CatalogModel> = {}): CatalogModel => ({
  id,
  kind: 'decision',
  status: 'live',
  description: `Model ${id}.`,
  context_tokens: 16_384,
  input_price_micros_per_million_tokens: 500_000,
  released_at_ms: 1_700_000_000_000,
  weights: 'embedded',
  weights_sha256: null,
  profile: null,
  upstreams: null,
  ...NOT_TUNED,
  ...values,
});

const UPSTREAMS: UpstreamPool = {
  protocol: 'systemone',
  addresses: ['http://10.0.0.2:8080', 'https://[::1]/"quoted\\path"'],
  draining: ['http://10.0.0.2:8080'],
  model: 'Modell "ä" \u0001',
  token_file: null,
  ca_file: '/etc/tds/ca.pem',
};

const NOTHING_KNOWN = {
  status: 'coming_soon',
  context_tokens: null,
  input_price_micros_per_million_tokens: null,
  released_at_ms: null,
  weights: null,
} as const;

describe.each(DATABASES)('the catalog in $name', ({ open }) => {
  let database: OpenDatabase;
  beforeEach(async () => {
    database = await open();
  });
  afterEach(() => database.close());

  test('a model is found as it was inserted, every field of it', async () => {
    const { catalog } = database.store;
    const stored = [
      model('chat', { kind: 'chat', ...NOTHING_KNOWN }),
      model('own', { weights: '/m.gguf', weights_sha256: 'a'.repeat(64), profile: 'codes-v1' }),
      model('pool', { weights: null, upstreams: UPSTREAMS }),
      model('pricey', { input_price_micros_per_million_tokens: Number.MAX_SAFE_INTEGER }),
    ];
    for (const given of stored) await catalog.insertModel(given);
    for (const given of stored) expect(await catalog.findModel(given.id)).toEqual(given);
    expect(await catalog.allModels()).toEqual(stored);
  });

  test('a model is found by its exact id or alias only, whatever a client names', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('decision-1'));
    await catalog.writeAlias({ alias: 'latest', model_id: 'decision-1' });
    expect(await catalog.findModelByAlias('latest')).toEqual(model('decision-1'));
    expect(await catalog.findAlias('latest')).toEqual({ alias: 'latest', model_id: 'decision-1' });
    for (const name of [
      '',
      'Decision-1',
      'LATEST',
      'decision-1 ',
      'decision_1',
      'decision-1\u0000',
      'latest\u0000',
      '\ud800',
      'x'.repeat(100_000),
    ]) {
      expect(await catalog.findModel(name)).toBeUndefined();
      expect(await catalog.findModelByAlias(name)).toBeUndefined();
      expect(await catalog.findAlias(name)).toBeUndefined();
    }
  });

  test('models are listed by the bytes of their ids, and aliases by those of their names', async () => {
    const { catalog } = database.store;
    for (const id of SHUFFLED) await catalog.insertModel(model(id));
    for (const alias of SHUFFLED) await catalog.writeAlias({ alias, model_id: 'a' });
    expect((await catalog.allModels()).map(({ id }) => id)).toEqual(BYTEWISE);
    expect((await catalog.allAliases()).map(({ alias }) => alias)).toEqual(BYTEWISE);
  });

  test('a model is inserted once; one that is there already stays as it is', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('m'));
    await expect(catalog.insertModel(model('m', { description: 'Other.' }))).rejects.toThrow();
    await catalog.insertModelIfMissing(model('m', { description: 'Other.' }));
    await catalog.insertModelIfMissing(model('new', { upstreams: UPSTREAMS }));
    expect(await catalog.allModels()).toEqual([model('m'), model('new', { upstreams: UPSTREAMS })]);
  });

  test('a live model has a price', async () => {
    const { catalog } = database.store;
    const free = { input_price_micros_per_million_tokens: null };
    await expect(catalog.insertModel(model('m', free))).rejects.toThrow();
    await expect(catalog.insertModelIfMissing(model('m', free))).rejects.toThrow();
    await catalog.insertModel(model('m'));
    await expect(catalog.updateModel('m', free)).rejects.toThrow();
    expect(await catalog.allModels()).toEqual([model('m')]);
  });

  test('a model is changed alone, in what is given alone', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('m'));
    await catalog.insertModel(model('other'));
    await catalog.updateModel('m', { upstreams: UPSTREAMS, weights: null });
    expect(await catalog.findModel('m')).toEqual(model('m', { upstreams: UPSTREAMS, weights: null }));
    await catalog.updateModel('m', { upstreams: { ...UPSTREAMS, draining: [] } });
    await catalog.updateModel('m', { upstreams: null, context_tokens: 9, status: 'coming_soon' });
    await catalog.updateModel('nothing', { context_tokens: 9 });
    const changed = { upstreams: null, weights: null, context_tokens: 9, status: 'coming_soon' } as const;
    expect(await catalog.allModels()).toEqual([model('m', changed), model('other')]);
  });

  test('a model is deleted with its aliases, and others stay', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('m'));
    await catalog.insertModel(model('other'));
    for (const [alias, model_id] of [
      ['a', 'm'],
      ['b', 'm'],
      ['c', 'other'],
    ] as const) {
      await catalog.writeAlias({ alias, model_id });
    }
    await catalog.deleteModel('m');
    await catalog.deleteModel('nothing');
    expect(await catalog.allModels()).toEqual([model('other')]);
    expect(await catalog.allAliases()).toEqual([{ alias: 'c', model_id: 'other' }]);
  });

  test('counts of answers add up by question and class, from a day on, and go with their day or model', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('m'));
    await catalog.insertModel(model('other'));
    const { catalog: of_another } = await database.another();
    const [one, two] = [
      { question: 0, class: 1, answers: 2 },
      { question: 1, class: 0, answers: 5 },
    ];
    await catalog.addAnswerCounts('m', '2026-01-01', [two, one]);
    await of_another.addAnswerCounts('m', '2026-01-02', [one]);
    await Promise.all([catalog, of_another].map((to) => to.addAnswerCounts('m', '2026-01-02', [one])));
    await catalog.addAnswerCounts('m', '2026-01-02', []);
    await catalog.addAnswerCounts('other', '2026-01-01', [two]);
    await expect(catalog.addAnswerCounts('nothing', '2026-01-01', [one])).rejects.toThrow();
    expect(await catalog.answerCounts('m', '2026-01-01')).toEqual([{ ...one, answers: 8 }, two]);
    expect(await catalog.answerCounts('m', '2026-01-02')).toEqual([{ ...one, answers: 6 }]);
    await catalog.forgetAnswerCounts('2026-01-02');
    expect(await catalog.answerCounts('m', '')).toEqual([{ ...one, answers: 6 }]);
    expect(await catalog.answerCounts('other', '')).toEqual([]);
    await catalog.deleteModel('m');
    expect(await database.count('answer_counts')).toBe(0);
  });

  test('an alias is written in the place of one of its name, for a model that exists, and deleted alone', async () => {
    const { catalog } = database.store;
    await catalog.insertModel(model('m'));
    await catalog.insertModel(model('other'));
    await catalog.writeAlias({ alias: 'a', model_id: 'm' });
    await catalog.writeAlias({ alias: 'b', model_id: 'm' });
    await catalog.writeAlias({ alias: 'a', model_id: 'other' });
    await expect(catalog.writeAlias({ alias: 'a', model_id: 'nothing' })).rejects.toThrow();
    expect(await catalog.allAliases()).toEqual([
      { alias: 'a', model_id: 'other' },
      { alias: 'b', model_id: 'm' },
    ]);
    await catalog.deleteAlias('a');
    await catalog.deleteAlias('nothing');
    expect(await catalog.allAliases()).toEqual([{ alias: 'b', model_id: 'm' }]);
    expect(await catalog.findModelByAlias('a')).toBeUndefined();
  });

  test('processes that begin at once seed the same models once', async () => {
    const stores = [database.store, await database.another(), await database.another()];
    await Promise.all(stores.map((store) => store.transaction(({ catalog }) => seedCatalog(catalog))));
    expect((await database.store.catalog.allModels()).map(({ id }) => id)).toEqual(['chat-1', 'decision-1']);
  });
});
