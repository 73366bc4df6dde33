import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test';
import { MINUTE_MS, systemClock } from '../../src/time/clock.ts';
import { ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import { MovableClock } from '../support/clock.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(120_000);

/** Within a minute a user makes so many changes, and within a day so many. */
const AT_ONCE = 120;
const A_DAY = 2_000;
const MONTH_MS = 31 * 86_400_000;

/** Budgets come back by hand only; links and sessions end by the machine's clock. */
const clock = new MovableClock({ now_ms: systemClock.now_ms, monotonic_ms: () => 1_000_000 });

let made: TestConsole;
beforeAll(async () => {
  const passwords = {
    hash: (password: string) => Promise.resolve(password),
    verify: ({ hash, password }: { hash: string; password: string }) => Promise.resolve(hash === password),
  };
  made = await startTestConsole({ clock }, { passwords });
});
afterAll(() => made.close());

const rename = async (person: Person) =>
  (await person.ask('/console/api/account', { method: 'PATCH', body: { name: 'Eve' } })).status;

/** Has them make that many changes, as fast as each of them may; returns the statuses that came. */
async function change(people: readonly Person[], changes: number): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (let done = 0; done < changes; done += AT_ONCE) {
    const batch = Math.min(AT_ONCE, changes - done);
    for (const person of people) {
      const answers = await Promise.all(Array.from({ length: batch }, () => rename(person)));
      for (const status of answers) statuses.add(status);
    }
    made.service.clock.advance(MINUTE_MS);
  }
  return statuses;
}

/** Accounts that are older than a month have no share in the budget of their address. */
const makeOlder = ({ user_id }: Person) =>
  made.service.execute(
    `UPDATE users SET created_at_ms = created_at_ms - ${MONTH_MS} WHERE id = '${user_id}'`,
  );

test('a user makes 2,000 changes a day, however slowly; others go on', async () => {
  const eve = await addPerson(made, { email: 'eve@example.com' });
  const ada = await addPerson(made, { email: 'ada@example.com' });
  for (const person of [eve, ada]) await makeOlder(person);
  expect(await change([eve], A_DAY)).toEqual(new Set([200]));
  // A few have come back by then: one every 43 seconds.
  expect(await change([eve], AT_ONCE)).toEqual(new Set([200, 429]));
  expect(await rename(ada)).toBe(200);
});

test('new accounts of an address make 2,000 changes a day together; older ones go on', async () => {
  const people = [];
  for (const number of [1, 2, 3, 4])
    people.push(await addPerson(made, { email: `new${number}@example.com` }));
  expect(await change(people, A_DAY / 4)).toEqual(new Set([200]));
  expect(await change(people, AT_ONCE)).toEqual(new Set([200, 429]));
  const [first] = people;
  if (first === undefined) throw new Error('nobody is there');
  // One or two came back within the last minute.
  while ((await rename(first)) === 200);
  await makeOlder(first);
  expect(await rename(first)).toBe(200);
});

test('a read of usage that takes too long is a 503 with a sentence, and the next one is answered', async () => {
  const person = await addPerson(made, { email: 'reader@example.com' });
  const path = `/console/api/organizations/${person.organization_id}/usage/values`;
  const late = spyOn(made.service.service.services.reader, 'values').mockRejectedValueOnce(
    new ReadTookTooLong(),
  );
  const refused = await person.ask(path);
  late.mockRestore();
  expect([refused.status, await refused.json()]).toEqual([
    503,
    expect.objectContaining({
      error: expect.objectContaining({
        code: 'read_too_long',
        message: 'This takes too long to add up: choose a shorter time.',
      }),
    }),
  ]);
  expect((await person.ask(path)).status).toBe(200);
});
