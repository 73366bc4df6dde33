import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { type DecisionPlanner, EngineFailed, openPlanner } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { eventually } from '../support/eventually.ts';
import { Gate } from '../support/faults.ts';
import { booksOf, closeAudited, ledgerOf, usageOf } from '../support/money.ts';
import { ask, callTool, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  lifecycleOf,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Every request waits for this before the real engine plans it. */
let beforePlanning = (): Promise<void> => Promise.resolve();

function held(planner: DecisionPlanner): DecisionPlanner {
  return {
    async plan(input) {
      await beforePlanning();
      return await planner.plan(input);
    },
    openEngine: () => planner.openEngine(),
    close: () => planner.close(),
  };
}

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: TestService;
beforeAll(async () => {
  directory = await temporaryDirectory();
  const model_path = join(directory.path, 'tiny.gguf');
  await writeTinyModel(model_path, TINY_MARKERS);
  service = await startTestService({
    openPlanner: async () => held(await openPlanner({ model_path, gpu: false, threads: 1 })),
  });
});
afterAll(async () => {
  await closeAudited(service);
  await directory[Symbol.asyncDispose]();
});
afterEach(() => {
  beforePlanning = () => Promise.resolve();
});

test('a request whose engine is closed while it is planned is answered by the next one', async () => {
  const { key } = await addAccount(service);
  const model = lifecycleOf(service.service);
  const closed = model.engineIfLoaded();
  const gate = new Gate();
  beforePlanning = () => gate.pass();
  const response = ask(service, key);
  await gate.reached;
  beforePlanning = () => Promise.resolve();
  // As an idle unload does: nobody else uses the engine, and it is closed at once.
  await model.use('fast', () => Promise.reject(new EngineFailed('to be closed'))).catch(() => {});
  gate.open();
  await expectDecision(await response);
  expect(model.engineIfLoaded()).not.toBe(closed);
});

/** How many entries the ledger ever had. */
function entriesEver(): number {
  return (
    service.db.$client
      .query<{ seq: number }, []>("SELECT seq FROM sqlite_sequence WHERE name = 'ledger_entries'")
      .get()?.seq ?? 0
  );
}

test('a client that leaves while its request is planned: its hold is released, nothing is recorded', async () => {
  const account = await addAccount(service);
  const before = await booksOf(service, account);
  const entries_before = entriesEver();
  const gate = new Gate();
  beforePlanning = () => gate.pass();
  const client = new AbortController();
  const response = service.fetch('/v1/decisions', {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}` },
    body: JSON.stringify(SMALL_REQUEST),
    signal: client.signal,
  });
  await gate.reached;
  expect((await ledgerOf(service, account)).map(({ kind }) => kind)).toEqual(['top_up']);
  client.abort();
  await expect(response).rejects.toThrow();
  gate.open();
  // A released hold leaves no entry, but its number stays taken.
  while (entriesEver() === entries_before || (await booksOf(service, account)).held_micros > 0)
    await new Promise(setImmediate);
  expect(await booksOf(service, account)).toEqual(before);
  expect(await usageOf(service, account)).toEqual([]);
});

test('of many requests at once hardly more are planned than may be admitted', async () => {
  const account = await addAccount(service);
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, { requests_per_minute: 2 });
  let planned = 0;
  beforePlanning = () => {
    planned += 1;
    return Promise.resolve();
  };
  const responses = await Promise.all(Array.from({ length: 30 }, () => ask(service, account.key)));
  const [refused] = responses.filter(({ status }) => status === 429);
  expect(responses.filter(({ status }) => status === 200)).toHaveLength(2);
  if (refused !== undefined) await expectError(refused, 'rate_limit_exceeded');
  // Those of the organization's slots that begin before the second is counted.
  expect(planned).toBeLessThanOrEqual(2 + 3);
});

test('bodies that wait to be planned have a budget: above it an organization is refused, and no other', async () => {
  const [greedy, other] = [await addAccount(service), await addAccount(service)];
  const { unplanned_bodies } = service.service.services;
  const gate = new Gate();
  beforePlanning = () => gate.pass();
  const large = () => ask(service, greedy.key, { state: 'x'.repeat(1_000_000) });
  const first = Array.from({ length: 20 }, large);
  await eventually(() => unplanned_bodies.taken_bytes >= 20_000_000);
  const second = Array.from({ length: 20 }, large);
  // Some of them fit; the others are answered while nothing is planned.
  const answered: Response[] = [];
  for (const response of second) void response.then((one) => answered.push(one));
  await eventually(() => answered.length >= 7);
  for (const response of answered.slice(0, 7)) {
    expect(response.headers.get('retry-after')).toBe('1');
    await expectError(response, 'overloaded');
  }
  const welcome = ask(service, other.key);
  gate.open();
  beforePlanning = () => Promise.resolve();
  await expectDecision(await welcome);
  await Promise.all([...first, ...second]);
  expect(unplanned_bodies.taken_bytes).toBe(0);
});

/** Calls the tool `decide` over MCP with a large record; returns what it says. */
async function largeToolCall(key: string): Promise<string> {
  const given = { record: 'x'.repeat(1_000_000), questions: SMALL_REQUEST.questions };
  return await (await callTool(service, key, 'decide', given)).text();
}

test('bodies of calls of tools that wait to be planned have the same budget', async () => {
  const { key } = await addAccount(service);
  const { unplanned_bodies } = service.service.services;
  const gate = new Gate();
  beforePlanning = () => gate.pass();
  const answered: string[] = [];
  const calls = Array.from({ length: 40 }, () => largeToolCall(key).then((text) => answered.push(text)));
  await eventually(() => answered.length >= 7);
  for (const text of answered.slice(0, 7)) expect(text).toContain('overloaded');
  expect(unplanned_bodies.taken_bytes).toBeGreaterThan(20_000_000);
  gate.open();
  beforePlanning = () => Promise.resolve();
  await Promise.all(calls);
  expect(unplanned_bodies.taken_bytes).toBe(0);
});
