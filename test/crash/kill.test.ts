import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Db } from '../../db/sqlite/connection.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { propertySeed } from '../ledger/support.ts';
import { ChildServer } from '../support/child-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectClean, expectKept } from './kept.ts';
import { addLoadAccounts, Load, type LoadKeys, type Seen } from './load.ts';

/**
 * The service is killed at random moments, while it starts and under parallel load, again and again on the same data.
 * Two servers, each with its own data, take turns at starting and being under load.
 */

const SERVERS = 2;
const KILLS_A_SERVER = 26;
const CLIENTS = 12;
/** Most kills hit a server under load, up to this long after its first request. */
const LOAD_MS_MAX = 1_000;
/** One kill in this many hits a server while it starts. */
const STARTS_KILLED_ONE_IN = 5;
const START_MS_MAX = 2_000;
const TEST_TIMEOUT_MS = 600_000;

interface Kill {
  readonly while_starting: boolean;
  readonly after_ms: number;
}

interface Tally {
  kills: number;
  holds_left_open: number;
  readonly statuses: Map<number, number>;
}

async function killWhileStarting(directory: string, after_ms: number): Promise<void> {
  await using server = new ChildServer(directory);
  await Promise.race([server.ready(), Bun.sleep(after_ms)]);
  await server.kill();
}

/** Starts the server, checks what the last kill left, and kills it again under load. Returns what the clients saw. */
async function killUnderLoad(
  directory: string,
  db: Db,
  keys: LoadKeys,
  after_ms: number,
  tally: Tally,
): Promise<readonly Seen[]> {
  await using server = await new ChildServer(directory).ready();
  tally.holds_left_open += server.releasedAtStart;
  expectClean(db);
  const load = new Load(server.address, keys, CLIENTS);
  await Bun.sleep(after_ms);
  await server.kill();
  await load.ended();
  return load.seen;
}

async function killAgainAndAgain(kills: readonly Kill[], tally: Tally): Promise<void> {
  using root = temporaryDirectory();
  const directory = root.path;
  const db = openDataDirectory(directory, { create: true });
  try {
    const keys = await addLoadAccounts(db);
    const seen: Seen[] = [];
    for (const { while_starting, after_ms } of kills) {
      if (while_starting) await killWhileStarting(directory, after_ms);
      else seen.push(...(await killUnderLoad(directory, db, keys, after_ms, tally)));
      tally.kills += 1;
    }
    await using server = await new ChildServer(directory).ready();
    tally.holds_left_open += server.releasedAtStart;
    expectClean(db);
    for (const one of seen) {
      tally.statuses.set(one.status, (tally.statuses.get(one.status) ?? 0) + 1);
      expectKept(db, one);
    }
  } finally {
    db.$client.close();
  }
}

test(
  'however often the service is killed, what it answered is charged once, and nothing else is',
  async () => {
    const seed = propertySeed('kill -9');
    const kill = fc.record({
      while_starting: fc.nat({ max: STARTS_KILLED_ONE_IN - 1 }).map((number) => number === 0),
      fraction: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const kills = fc
      .sample(kill, { seed, numRuns: SERVERS * KILLS_A_SERVER })
      .map(({ while_starting, fraction }): Kill => {
        const after_ms = Math.round(fraction * (while_starting ? START_MS_MAX : LOAD_MS_MAX));
        return { while_starting, after_ms };
      });
    const tally: Tally = { kills: 0, holds_left_open: 0, statuses: new Map() };
    // Both to their end, so that a failure leaves no server behind.
    const outcomes = await Promise.allSettled(
      Array.from({ length: SERVERS }, (_, server) =>
        killAgainAndAgain(kills.slice(server * KILLS_A_SERVER, (server + 1) * KILLS_A_SERVER), tally),
      ),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    console.log(JSON.stringify({ ...tally, statuses: Object.fromEntries(tally.statuses) }));
    expect(tally.kills).toBeGreaterThanOrEqual(50);
    expect(tally.holds_left_open).toBeGreaterThan(0);
    expect([...tally.statuses.keys()].sort()).toEqual([200, 402, 422, 429]);
  },
  TEST_TIMEOUT_MS,
);
