import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { setUpstreamCalibration } from '../../src/catalog/changes.ts';
import type { DecisionResponse } from '../../src/decisions/schemas.ts';
import { fingerprintOf, serverFacts } from '../../src/upstreams/server-facts.ts';
import { post } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { addUpstreamModel } from '../support/upstream-model.ts';
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
let key: string;
beforeAll(async () => {
  member = await TestMember.start();
  member.behaviour = ({ body }, response) => {
    const is_trial = !body.includes('Which?');
    const answers = { q1: is_trial ? { type: 'noul', noul: 0.9 } : ANSWER };
    response.end(JSON.stringify({ answers, usage: { input_tokens: 7, output_tokens: 0 } }));
  };
  member.onList = answering(200, listOf('first'));
  service = await startTestService({ upstreams: { schedule: time.schedule } });
  ({ key } = await addAccount(service));
  await addUpstreamModel(service, 'kev', [member.address]);
});
afterAll(async () => {
  await service.close();
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
