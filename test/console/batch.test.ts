import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { addMember, changeRole, removeMember } from '../../src/accounts/members.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import type { MemberRef } from '../../src/store/account-records.ts';
import { answersOf, codesOf, HEADER, ndjson, record } from '../batches/support.ts';
import { MovableClock } from '../support/clock.ts';
import { Gate } from '../support/faults.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, type TestAccount, type TestService } from '../support/service.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const RUN_KEY = 'a1'.repeat(32);

let made: TestConsole;
let account: TestAccount;
let ada: Person;
beforeAll(async () => {
  made = await startTestConsole({ cold: false });
  account = await addAccount(made.service);
  ada = await addPerson(made, { email: 'ada@example.com' });
  const { organization_id } = account;
  await addMember(made.service.accounts, OPERATOR, {
    organization_id,
    user_id: ada.user_id,
    role: 'owner',
  });
});
afterAll(() => made.close());

/** Sends lines as the page does. */
function send(
  lines: readonly unknown[],
  { run_key = RUN_KEY, key_id = account.key_id }: { run_key?: string; key_id?: string } = {},
): Promise<Response> {
  return sendAs({ service: made.service, person: ada, key: { ...account, key_id } }, lines, run_key);
}

function sendAs(
  { service, person, key }: { service: TestService; person: Person; key: TestAccount },
  lines: readonly unknown[],
  run_key = RUN_KEY,
): Promise<Response> {
  return service.fetch(`/console/api/organizations/${key.organization_id}/batch/${key.key_id}`, {
    method: 'POST',
    headers: {
      cookie: person.cookie,
      origin: service.server.address,
      'x-csrf-token': person.csrf_token,
      'content-type': 'application/x-ndjson',
      'idempotency-key': run_key,
    },
    body: ndjson(lines),
  });
}

async function credit_micros(): Promise<number> {
  const found = await made.service.accounts.store.accounts.findOrganization(account.organization_id);
  return found?.credit_micros ?? Number.NaN;
}

const costOf = (answers: Awaited<ReturnType<typeof answersOf>>) =>
  answers.reduce((sum, one) => sum + ('usage' in one ? Math.round(one.usage.cost_usd * 1e6) : 0), 0);

test('rows are answered and charged as those of a batch, once however often they are sent', async () => {
  const lines = [HEADER, record(1), record(2), { id: 'r3', state: 3 }];
  const before = await credit_micros();
  const answers = await answersOf(await send(lines));
  expect(codesOf(answers)).toEqual([
    [2, null],
    [3, null],
    [4, 'missing_state'],
  ]);
  const between = await credit_micros();
  expect(before - between).toBe(costOf(answers));
  expect(before - between).toBeGreaterThan(0);

  const again = await answersOf(await send(lines));
  expect(again.map((one) => 'replayed' in one && one.replayed)).toEqual([true, true, false]);
  expect(costOf(again)).toBe(costOf(answers));
  expect(await credit_micros()).toBe(between);

  const other_run = await answersOf(await send(lines, { run_key: 'b2'.repeat(32) }));
  expect(between - (await credit_micros())).toBe(costOf(other_run));
});

test('no row and no key of a run is in the database', async () => {
  const run_key = 'c3'.repeat(32);
  await answersOf(await send([HEADER, { id: 1, state: 'The zebra ate my order.' }], { run_key }));
  const stored = JSON.stringify(await made.service.everything());
  expect(stored).not.toContain('zebra');
  expect(stored).not.toContain(run_key);
});

test('a key of a run that could be guessed is refused, because the hashes of rows are keyed with it', async () => {
  for (const run_key of ['', '1', 'a'.repeat(42), `${RUN_KEY}!`]) {
    const response = await send([HEADER, record(1)], { run_key });
    const { error } = Value.Parse(ErrorResponseSchema, await response.json());
    expect([run_key, response.status, error.code]).toEqual([run_key, 400, 'invalid_idempotency_key']);
  }
});

test('questions that are refused are told once, and are free', async () => {
  const before = await credit_micros();
  const response = await send([{ questions: { a: { type: 'essay' } } }, record(1)]);
  const { error } = Value.Parse(ErrorResponseSchema, await response.json());
  expect([response.status, error.code]).toEqual([422, 'invalid_question_type']);
  expect(await credit_micros()).toBe(before);
});

test("another organization's key is one that does not exist", async () => {
  const other = await addAccount(made.service);
  expect((await send([HEADER, record(1)], { key_id: other.key_id })).status).toBe(404);
});

describe('a batch whose lines wait for the rate limits ends', () => {
  const CHANGES = {
    'its member is removed': (service: TestService, member: MemberRef) =>
      removeMember(service.accounts, OPERATOR, member),
    'its member may not use keys any more': (service: TestService, member: MemberRef) =>
      changeRole(service.accounts, OPERATOR, { ...member, role: 'billing' }),
    'its session is ended': (service: TestService, { user_id }: MemberRef) =>
      service.execute(`DELETE FROM sessions WHERE user_id = '${user_id}'`),
  };

  test.each(Object.entries(CHANGES))('once %s', async (_name, change) => {
    const waits = new Gate();
    const clock = new MovableClock();
    const { service, ...own } = await startTestConsole({
      cold: false,
      clock,
      pause: async (duration_ms) => {
        await waits.pass();
        clock.advance(duration_ms);
      },
    });
    try {
      const owner = await addPerson({ service, ...own }, { email: 'ada@example.com' });
      const person = await addPerson({ service, ...own }, { email: 'eve@example.com' });
      const key = await addAccount(service);
      const { organization_id } = key;
      const { user_id } = owner;
      await addMember(service.accounts, OPERATOR, { organization_id, user_id, role: 'owner' });
      const member = { organization_id, user_id: person.user_id };
      await addMember(service.accounts, OPERATOR, { ...member, role: 'developer' });
      await setTierSettings(service.accounts, OPERATOR, organization_id, { requests_per_minute: 10 });
      const lines = Array.from({ length: 30 }, (_, number) => record(number));
      const sent = sendAs({ service, person, key }, [HEADER, ...lines]);
      await waits.reached;
      await change(service, member);
      waits.open();
      const codes = codesOf(await answersOf(await sent)).map(([, code]) => code);
      expect(codes.filter((code) => code === null)).toHaveLength(9);
      expect(new Set(codes)).toEqual(new Set([null, 'invalid_api_key']));
    } finally {
      waits.open();
      await own.close();
    }
  });
});
