import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { addOpenModel, setUpstreamCalibration } from '../../src/catalog/changes.ts';
import type { DecisionResponse } from '../../src/decisions/schemas.ts';
import type { Question } from '../../src/questions/question.ts';
import { tuningSha256 } from '../../src/served-models/tunings.ts';
import { fingerprintOf, serverFacts } from '../../src/upstreams/server-facts.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { post } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { addUpstreamModel } from '../support/upstream-model.ts';
import { shiftEntry, tuningOf } from '../tuning/strong-tuning.ts';
import { answering, ManualTime, TestMember, until } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const listOf = (id: string) => JSON.stringify({ data: [{ id }] });
const CHOICE = { type: 'choice', instructions: 'Which?', criteria: { left: null, right: null } };
const ANSWER = { type: 'choice', choice: 'left', probabilities: { left: 0.8, right: 0.2 } };
const TEMPERATURE = 2;
/** A logit of ln 4 divided by the temperature. */
const CALIBRATED = 2 / 3;

const time = new ManualTime();
let service: TestService;
let member: TestMember;
let account: TestAccount;
let key: string;
beforeAll(async () => {
  member = await TestMember.start();
  member.behaviour = ({ body }, response) => {
    const is_trial = !body.includes('Which?');
    const asked = Object.keys(JSON.parse(body).questions);
    const answer = is_trial ? { type: 'noul', noul: 0.9 } : ANSWER;
    const answers = Object.fromEntries(asked.map((id) => [id, answer]));
    response.end(JSON.stringify({ answers, usage: { input_tokens: 7, output_tokens: 0 } }));
  };
  member.onList = answering(200, listOf('first'));
  service = await startTestService({ upstreams: { schedule: time.schedule } });
  account = await addAccount(service);
  ({ key } = account);
  await addUpstreamModel(service, 'kev', [member.address]);
});
afterAll(async () => {
  await closeAudited(service);
  await member.kill();
});

/** Lets time pass for the service and for the checks of its pools. */
function pass(duration_ms: number): void {
  service.clock.advance(duration_ms);
  time.advance(duration_ms);
}

async function left(): Promise<number> {
  const body = { model: 'kev', state: 'A road.', questions: { where: CHOICE } };
  const answer: DecisionResponse = JSON.parse(await (await post(service, key, body)).text());
  const { where } = answer.answers;
  if (where?.type !== 'choice') throw new Error('there is no choice');
  return where.probabilities.left ?? Number.NaN;
}

async function calibrate(list: string): Promise<void> {
  const row = await service.accounts.store.catalog.findModel('kev');
  if (row?.upstreams == null) throw new Error('there is no kev');
  const buckets = [{ most_options: 2, temperature: TEMPERATURE }];
  const temperatures = { noul: TEMPERATURE, choice: buckets, score: buckets };
  const fitted = { cases_sha256: '0'.repeat(64), records: 1, questions: 1 };
  await setUpstreamCalibration(service.accounts, OPERATOR, row, {
    fingerprint: fingerprintOf(row.upstreams, serverFacts(list, null), ''),
    temperatures: { fast: temperatures, consistent: temperatures },
    fitted_on: { fast: fitted, consistent: fitted },
  });
}

test('a running service calibrates by what the catalog has, as long as the upstream has the model that it was fitted on', async () => {
  const { problems } = service.service.services;
  expect(await left()).toBeCloseTo(0.8, 3);
  await calibrate(listOf('first'));
  // The list of a pool that had no calibration is read with the next check.
  pass(5_000);
  while (Math.abs((await left()) - CALIBRATED) > 1e-3) pass(1_000);
  expect(problems.recent({})).toEqual([]);
  let lists = 0;
  member.onList = (...request) => {
    lists += 1;
    return answering(200, listOf('second'))(...request);
  };
  pass(5_000);
  await until(() => lists > 0);
  while (Math.abs((await left()) - 0.8) > 1e-3);
  for (let request = 0; request < 3; request++) expect(await left()).toBeCloseTo(0.8, 3);
  expect(problems.recent({})).toMatchObject([{ step: 'upstream', model: 'kev' }]);
  await calibrate(listOf('second'));
  while (Math.abs((await left()) - CALIBRATED) > 1e-3);
  expect(problems.recent({})).toHaveLength(1);
});

/** Adds `kev-tuned`, which turns the answer to `CHOICE` round, for upstreams with that list of models. */
async function addTuned(list: string): Promise<void> {
  const row = await service.accounts.store.catalog.findModel('kev');
  if (row?.upstreams == null) throw new Error('there is no kev');
  const question: Question = {
    type: 'choice',
    instructions: CHOICE.instructions,
    options: ['left', 'right'].map((id) => ({ id, description: null })),
  };
  const weights_sha256 = fingerprintOf(row.upstreams, serverFacts(list, null), '');
  const facts = { weights_sha256, profile: 'systemone' };
  const tuning = tuningOf(facts, [shiftEntry(question, [0, Math.log(16)])], { model: 'kev' });
  await addOpenModel(
    service.accounts,
    OPERATOR,
    {
      ...{ id: 'kev-tuned', kind: 'decision', description: 'Tuned.' },
      context_tokens: row.context_tokens,
      input_price_micros_per_million_tokens: 3_000_000,
    },
    { base_id: 'kev', tuning_sha256: tuningSha256(tuning), organization_id: null, tuning },
  );
}

test('a tuned model of upstreams corrects its questions and no others, as long as they have the model that was tuned', async () => {
  member.onList = answering(200, listOf('third'));
  await addTuned(listOf('third'));
  const other = { ...CHOICE, criteria: { left: 'one', right: null } };
  const body = { model: 'kev-tuned', state: 'A road.', questions: { where: CHOICE, other } };
  let response = await post(service, key, body);
  // The new list is read with the next check.
  for (; response.status === 502; response = await post(service, key, body)) pass(1_000);
  const { answers, usage, model } = await expectDecision(response);
  expect(model).toBe('kev-tuned');
  expect(answers).toMatchObject({
    where: { choice: 'right', probabilities: { left: expect.closeTo(0.2, 3) } },
    other: { choice: 'left', probabilities: { left: expect.closeTo(0.8, 3) } },
  });
  expect(usage.cost_usd).toBeCloseTo((3 * usage.input_tokens) / 1_000_000, 6);
  expect(await left()).toBeCloseTo(0.8, 3);

  member.onList = answering(200, listOf('fourth'));
  pass(5_000);
  while ((await post(service, key, body)).status === 200) pass(1_000);
  const { credit_micros } = await booksOf(service, account);
  await expectError(await post(service, key, body), 'model_unavailable');
  expect(await booksOf(service, account)).toMatchObject({ credit_micros, held_micros: 0 });
  const untuned = { ...body, questions: { other } };
  expect((await expectDecision(await post(service, key, untuned))).answers).toMatchObject({
    other: { choice: 'left' },
  });
});
