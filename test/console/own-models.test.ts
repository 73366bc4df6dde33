import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { listAuditLog } from '../../src/audit-log/list.ts';
import { setModelPrice } from '../../src/catalog/changes.ts';
import { OWN_MODELS_MAX } from '../../src/catalog/own-models.ts';
import { ErrorResponseSchema, ModelListSchema } from '../../src/http/schemas.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { Gate, intercepted } from '../support/faults.ts';
import { metricIn, seriesOf } from '../support/metrics.ts';
import { booksOf } from '../support/money.ts';
import { isPostgresMissing } from '../support/postgres.ts';
import { ALL_TYPES, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  EMBEDDED_MODEL,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { strongTuning, topic } from '../tuning/strong-tuning.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const { refund, team } = ALL_TYPES;
const TOPIC = topic(['technical', 'sales', 'billing']);
const Added = Type.Object({ id: Type.String() });
const Own = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.String(),
      base_id: Type.String(),
      drifts: Type.Array(Type.Object({ index: Type.Number() }, { additionalProperties: Type.Unknown() })),
    }),
  ),
});
const Drifts = Type.Object({
  items: Type.Array(
    Type.Object({ id: Type.String(), drift_index: Type.Union([Type.Number(), Type.Null()]) }),
  ),
});

/** An organization with credit, and one of its owners. */
interface Customer extends TestAccount {
  readonly owner: Person;
}

let made: TestConsole;
const metrics = new PrometheusMetrics({ version: '1', commit: 'abc', runtime: 'test' });
let tuning: string;
/** The model waits at it while it is there. */
let gate: Gate | null = null;
beforeAll(async () => {
  made = await startTestConsole({
    embedded: true,
    cold: false,
    metrics,
    openEngine: (engine) =>
      intercepted(engine, async (run) => {
        await gate?.pass();
        return await run();
      }),
  });
  tuning = strongTuning((await EMBEDDED_MODEL.engine()).facts);
});
afterAll(async () => {
  await made.close();
  metrics.close();
});
// So that every test has a whole budget of sign-ins.
beforeEach(() => made.service.clock.advance(20 * 60_000));

let count = 0;
async function customer(given: { readonly credit_dollars?: number } = {}, at = made): Promise<Customer> {
  const account = await addAccount(at.service, given);
  const owner = await addPerson(at, { email: `owner${++count}@example.com` });
  const { organization_id } = account;
  await addMember(at.service.accounts, OPERATOR, { organization_id, user_id: owner.user_id, role: 'owner' });
  return { ...account, owner };
}

const pathOf = ({ organization_id }: TestAccount) =>
  `/console/api/organizations/${organization_id}/own-models/`;

const add = (to: Customer, name: string, text = tuning) =>
  to.owner.ask(`${pathOf(to)}?name=${encodeURIComponent(name)}`, { body: text });

async function added(to: Customer, name: string): Promise<string> {
  const response = await add(to, name);
  expect(response.status).toBe(200);
  return Value.Parse(Added, await response.json()).id;
}

const remove = (from: Customer, id: string) =>
  from.owner.ask(pathOf(from), { method: 'DELETE', body: { id } });

async function refusal(response: Response) {
  const { error } = Value.Parse(ErrorResponseSchema, await response.json());
  return { status: response.status, ...error };
}

const decide = async (
  account: TestAccount,
  model: string,
  questions: object,
  service: TestService = made.service,
) => await expectDecision(await post(service, account.key, { ...SMALL_REQUEST, model, questions }));

async function listed(account: TestAccount): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${account.key}` };
  const response = await made.service.fetch('/v1/models', { headers });
  return Value.Parse(ModelListSchema, await response.json()).data.map(({ id }) => id);
}

describe("an organization's own model", () => {
  test('corrects the tuned questions, and answers all others as its base does, at the same price', async () => {
    const own = await customer();
    const id = await added(own, 'support-1');
    expect(id).toBe(`${own.organization_id}:support-1`);
    const base = await decide(own, 'decision-1', { refund, team, topic: TOPIC });
    const tuned = await decide(own, id, { refund, team, topic: TOPIC });
    expect(tuned.model).toBe(id);
    expect(tuned.answers.refund).toMatchObject({ noul: 0 });
    expect(base.answers.refund).not.toMatchObject({ noul: 0 });
    expect(tuned.answers.topic).toMatchObject({ choice: 'sales' });
    expect(base.answers.topic).not.toMatchObject({ choice: 'sales' });
    expect(tuned.answers.team).toEqual(base.answers.team);
    expect(tuned.usage).toEqual(base.usage);
    await setModelPrice(made.service.accounts, OPERATOR, id, 0);
    expect((await decide(own, id, { refund })).usage.cost_usd).toBe(0);
  });

  test('is in the lists of its organization and in no other, whose names it leaves free', async () => {
    const [own, other] = [await customer(), await customer()];
    const id = await added(own, 'support-1');
    expect(await listed(own)).toContain(id);
    expect(await listed(other)).not.toContain(id);
    const refused = await post(made.service, other.key, { ...SMALL_REQUEST, model: id });
    await expectError(refused, 'model_not_found', 'model');
    const of_other = await added(other, 'support-1');
    const own_models = Value.Parse(Own, await (await own.owner.ask(pathOf(own))).json());
    expect(own_models.items).toMatchObject([{ id, base_id: 'decision-1' }]);
    expect(await refusal(await remove(own, of_other))).toMatchObject({ status: 404, code: 'not_found' });
    expect(await refusal(await remove(own, 'decision-1'))).toMatchObject({ status: 404, code: 'not_found' });
    expect((await decide(other, of_other, { refund })).answers.refund).toMatchObject({ noul: 0 });
  });

  test('is removed while a request of it runs, which is answered, and is gone for the next one', async () => {
    const own = await customer();
    const id = await added(own, 'support-1');
    gate = new Gate();
    const waiting = decide(own, id, { refund });
    await gate.reached;
    const removed = await remove(own, id);
    gate.open();
    gate = null;
    expect(removed.status).toBe(200);
    expect((await waiting).answers.refund).toMatchObject({ noul: 0 });
    const { credit_micros } = await booksOf(made.service, own);
    const refused = await post(made.service, own.key, { ...SMALL_REQUEST, model: id });
    await expectError(refused, 'model_not_found', 'model');
    expect(await booksOf(made.service, own)).toMatchObject({ credit_micros, held_micros: 0 });
    expect(await listed(own)).not.toContain(id);
    expect((await remove(own, id)).status).toBe(404);
    expect(await added(own, 'support-1')).toBe(id);
  });

  test('leaves an entry of the audit log with each change, and none without one', async () => {
    const own = await customer();
    const id = await added(own, 'support-1');
    expect((await add(own, 'support-1')).status).toBe(409);
    expect((await add(own, 'support-2', 'no tuning')).status).toBe(422);
    await remove(own, id);
    const { organization_id } = own;
    const { items } = await listAuditLog(made.service.accounts, OPERATOR, { organization_id });
    const { user_id } = own.owner;
    expect(items.filter(({ action }) => action.startsWith('own_model.'))).toMatchObject([
      { action: 'own_model.remove', object_id: id, user_id },
      { action: 'own_model.add', object_id: id, user_id, detail: { base_id: 'decision-1' } },
    ]);
  });

  test('says where its answers moved away from its tuning, by counts alone', async () => {
    const own = await customer();
    const id = await added(own, 'support-1');
    const drifts = async () => {
      const { items } = Value.Parse(Own, await (await own.owner.ask(pathOf(own))).json());
      return items.map((model) => model.drifts);
    };
    const often = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`refund ${at}`, refund]));
    for (let at = 0; at < 4; at += 1) await decide(own, id, { ...often, team, topic: TOPIC });
    await decide(own, 'decision-1', { refund });
    await made.service.service.services.answer_counts.flush();
    const { answer_counts } = await made.service.everything();
    const row = { model_id: id, day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) };
    const of_model = Type.Object({ model_id: Type.Literal(id) });
    expect<unknown>(answer_counts?.filter((stored) => Value.Check(of_model, stored))).toEqual([
      { ...row, question: 0, class: 0, answers: 120 },
      { ...row, question: 1, class: 1, answers: 4 },
    ]);
    const [[drift, ...others] = []] = await drifts();
    expect(others).toEqual([]);
    expect<unknown>(drift).toEqual({
      ...{ question: refund.instructions, mode: 'fast', has_moved: true, labels: 20, answers: 120 },
      index: expect.any(Number),
      classes: [
        { name: 'no', share_at_tuning: 0.5, share: 1 },
        { name: 'yes', share_at_tuning: 0.5, share: 0 },
      ],
    });
    expect(metricIn(await metrics.text(), `tds_answer_drift_index{model="${id}"}`)).toBe(drift?.index ?? 0);
    const operator = await addPerson(made, { email: 'operator@example.com', is_operator: true });
    const all = Value.Parse(Drifts, await (await operator.ask('/console/api/operator/models/')).json()).items;
    expect(all.filter(({ drift_index }) => drift_index !== null)).toEqual([
      { id, drift_index: drift?.index ?? 0 },
    ]);
    await remove(own, id);
    await made.service.service.services.answer_counts.flush();
    expect(seriesOf(await metrics.text(), 'tds_answer_drift_index')).toEqual([]);
  });

  test('asked under ever new names makes no more series of metrics', async () => {
    const own = await customer();
    const series = async () => (await metrics.text()).split('\n').filter((line) => !line.startsWith('#'));
    const counts: number[] = [];
    for (let at = 0; at <= 20; at += 1) {
      const id = await added(own, `support-${at}`);
      await decide(own, id, { refund });
      await remove(own, id);
      counts.push((await series()).length);
    }
    expect(new Set(counts)).toEqual(new Set(counts.slice(0, 1)));
    const text = await metrics.text();
    expect(text).not.toContain(own.organization_id);
    expect(metricIn(text, 'tds_questions_total{model="own",mode="fast"}')).toBeGreaterThanOrEqual(21);
  });

  test('is one of a few, of which one more fits when one is removed', async () => {
    const own = await customer();
    const ids: string[] = [];
    for (let at = 0; at < OWN_MODELS_MAX; at += 1) ids.push(await added(own, `support-${at}`));
    const refused = await refusal(await add(own, 'one-more', 'no tuning'));
    expect(refused).toMatchObject({ status: 409, code: 'too_many_models' });
    expect(refused.message).toContain(` ${OWN_MODELS_MAX} models`);
    await remove(own, ids[0] ?? '');
    await added(own, 'one-more');
  });
});

describe('what cannot be added is refused with a sentence, and changes nothing', () => {
  const LINE = '\n{"question":null}\n';
  test.each([
    ['a file that is no tuning', () => 'text,label', 'is not a tuning file'],
    ['an empty file', () => '', 'is not a tuning file'],
    ['a file that ends in the middle', () => tuning.slice(0, -40), 'is not whole'],
    [
      'a line that is no correction',
      () => tuning.split('\n')[0]?.concat(LINE, LINE.trim(), '\n') ?? '',
      'is no',
    ],
    ['a weight beyond all fits', () => tuning.replace('[30,0]', '[1e300,0]'), 'line 2 is no correction'],
    ['another version', () => tuning.replace('"version":1', '"version":2'), 'made by another version'],
    ['other weights', () => strongTuning(OTHER), 'belongs to no model'],
    ['more than a megabyte', () => tuning.padEnd(1_100_000), 'is larger than 1 MB'],
  ])('%s', async (_, text, sentence) => {
    const own = await customer();
    const before = await made.service.everything();
    const refused = await refusal(await add(own, 'support-1', text()));
    expect(refused).toMatchObject({ status: 422, code: 'unusable_tuning', param: 'tuning' });
    expect(refused.message).toContain(sentence);
    const after = await made.service.everything();
    expect([after.models, after.model_tunings]).toEqual([before.models, before.model_tunings]);
  });
  const OTHER = { weights_sha256: 'f'.repeat(64), profile: 'other' };

  test.each(['', ' ', 'two words', 'a:b', 'a/b', '-a', 'é', 'x'.repeat(61)])('the name %j', async (name) => {
    const refused = await refusal(await add(await customer(), name, 'no tuning'));
    expect(refused).toMatchObject({ status: 422, code: 'invalid_model_name', param: 'name' });
  });

  test('a name that the organization has', async () => {
    const own = await customer();
    await added(own, 'support-1');
    const refused = await refusal(await add(own, 'support-1'));
    expect(refused).toMatchObject({ status: 409, code: 'model_name_taken', param: 'name' });
  });

  test('any, before the organization had credit, whatever its tuning is', async () => {
    const refused = await refusal(await add(await customer({ credit_dollars: 0 }), 'support-1', 'no tuning'));
    expect(refused).toMatchObject({ status: 402, code: 'credit_needed' });
  });
});

test('a cold service finds the base of a tuning', async () => {
  const cold = await startTestConsole({ embedded: true, cold: true });
  try {
    const own = await customer({}, cold);
    expect((await add(own, 'support-1')).status).toBe(200);
  } finally {
    await cold.close();
  }
});

test.skipIf(isPostgresMissing())('all nodes of a database have it at once, and lose it at once', async () => {
  await using database = await takeDatabase();
  const one = await startTestConsole({ embedded: true, cold: false, postgres_url: database.url });
  const other = await startTestService({ embedded: true, postgres_url: database.url });
  try {
    const own = await customer({}, one);
    const id = await added(own, 'support-1');
    expect((await decide(own, id, { refund }, other)).answers.refund).toMatchObject({ noul: 0 });
    expect((await remove(own, id)).status).toBe(200);
    const refused = await post(other, own.key, { ...SMALL_REQUEST, model: id });
    await expectError(refused, 'model_not_found', 'model');
  } finally {
    await other.close();
    await one.close();
  }
});
