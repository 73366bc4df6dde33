import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { removeModel } from '../../src/catalog/changes.ts';
import { followCatalog } from '../../src/served-models/follow-catalog.ts';
import { metricIn, seriesOf, startWatchedService, type WatchedService } from '../support/metrics.ts';
import { post } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { addUpstreamModel } from '../support/upstream-model.ts';
import { answering, ManualTime, TestMember, until, YES } from '../upstreams/support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const REQUEST = { model: 'kev', state: 'Xq', questions: { is_on: { type: 'noul', instructions: 'on?' } } };
const time = new ManualTime();
let watched: WatchedService;
let members: readonly TestMember[];
let key: string;
beforeAll(async () => {
  watched = await startWatchedService({ upstreams: { schedule: time.schedule } });
  members = await Promise.all([TestMember.start(), TestMember.start()]);
  for (const member of members) {
    member.behaviour = answering(200, YES);
    member.onList = answering(200, '{"models":[]}');
  }
  await addUpstreamModel(
    watched.service,
    'kev',
    members.map(({ address }) => address),
  );
  ({ key } = await addAccount(watched.service));
});
afterAll(async () => {
  await watched.close();
  for (const member of members) await member.kill();
});

/** The labels of a member's series. */
const labelsOf = ({ address }: TestMember) => `model="kev",upstream="${address.replace('http://', '')}"`;
const valuesOf = (text: string, name: string, more = '') =>
  members.map((member) => metricIn(text, `${name}{${labelsOf(member)}${more}}`));
const ask = () => post(watched.service, key, REQUEST);

test('an upstream that no request has needed yet is untried, which no alert on open breakers takes for a failure', async () => {
  await followCatalog(watched.service.service.services);
  const text = await watched.scrape();
  expect(valuesOf(text, 'tds_upstream_breaker', ',state="untried"')).toEqual([1, 1]);
  expect(valuesOf(text, 'tds_upstream_breaker', ',state="open"')).toEqual([0, 0]);
});

test('each upstream has its calls, its failures, what it has outstanding, and its breaker', async () => {
  const asked = () =>
    members.map(({ received }) => received.filter(({ body }) => body.includes('Xq')).length);
  while (asked().some((count) => count < 2)) expect((await ask()).status).toBe(200);
  const text = await watched.scrape();
  expect(valuesOf(text, 'tds_upstream_requests_total')).toEqual([...asked()]);
  expect(valuesOf(text, 'tds_upstream_failures_total')).toEqual([0, 0]);
  expect(valuesOf(text, 'tds_upstream_outstanding_tokens')).toEqual([0, 0]);
  expect([...seriesOf(text, 'tds_upstream_breaker')].sort()).toEqual(
    members
      .flatMap((member) => [
        `tds_upstream_breaker{${labelsOf(member)},state="closed"} 1`,
        `tds_upstream_breaker{${labelsOf(member)},state="half_open"} 0`,
        `tds_upstream_breaker{${labelsOf(member)},state="open"} 0`,
        `tds_upstream_breaker{${labelsOf(member)},state="untried"} 0`,
      ])
      .sort(),
  );
});

test('a call that is not answered yet is outstanding, and one that failed is counted', async () => {
  const held: (() => void)[] = [];
  for (const member of members) {
    member.behaviour = (_received, response) => {
      held.push(() => void response.end(YES));
    };
  }
  const waiting = [ask(), ask()];
  await until(() => held.length === 2);
  const outstanding = valuesOf(await watched.scrape(), 'tds_upstream_outstanding_tokens');
  expect(outstanding.every((tokens) => tokens > 0)).toBe(true);
  for (const end of held) end();
  await Promise.all(waiting);
  for (const member of members) member.behaviour = answering(500, '{}');
  let text: string;
  do {
    await ask();
    text = await watched.scrape();
  } while (valuesOf(text, 'tds_upstream_breaker', ',state="open"').some((is_open) => is_open !== 1));
  expect(valuesOf(text, 'tds_upstream_failures_total').every((failures) => failures >= 3)).toBe(true);
});

test('a model that was removed leaves no series behind', async () => {
  const series = async () => seriesOf(await watched.scrape(), 'tds_model_ready');
  const isGone = (line: string) => line.includes('model="kev"');
  const before = await series();
  expect(before.some(isGone)).toBe(true);
  await removeModel(watched.service.accounts, OPERATOR, 'kev');
  await followCatalog(watched.service.service.services);
  expect(await series()).toEqual(before.filter((line) => !isGone(line)));
});
