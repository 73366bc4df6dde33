import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { POLL_MS } from '../support/service.ts';
import { expectClean, expectKept } from './kept.ts';
import { addLoadAccounts, Load } from './load.ts';
import { ServerProcess, TINY_MODEL } from './server-process.ts';

const CLIENTS = 12;
const REQUESTS_BEFORE_STOP = 50;
const TEST_TIMEOUT_MS = 120_000;

/** A served data directory with accounts, whose clients are at work. */
async function underLoad(...flags: string[]) {
  const root = temporaryDirectory();
  const model = join(root.path, 'tiny.gguf');
  const data = join(root.path, 'data');
  await writeTinyModel(model, TINY_MODEL);
  const db = openDataDirectory(data, { create: true });
  const keys = await addLoadAccounts(db);
  const server = new ServerProcess(data, model, flags);
  const address = await server.ready();
  if (address === null) throw new Error('the server did not start');
  const load = new Load(address, keys, CLIENTS);
  while (load.seen.length < REQUESTS_BEFORE_STOP) await Bun.sleep(POLL_MS);
  return {
    data,
    model,
    db,
    server,
    load,
    async [Symbol.asyncDispose]() {
      await server.kill();
      await load.ended();
      db.$client.close();
      root.remove();
    },
  };
}

test.each([
  ['SIGTERM', '0'],
  ['SIGINT', '30'],
] as const)(
  'a stop by %s under load, with %s s to finish, ends every hold itself, and charges exactly what was answered',
  async (signal, seconds) => {
    await using setup = await underLoad('--drain-seconds', seconds);
    setup.server.signal(signal);
    expect(await setup.server.ended()).toBe(0);
    await setup.load.ended();
    // No other process has run since: the stop left nothing to the next start.
    expectClean(setup.db);
    for (const seen of setup.load.seen) expectKept(setup.db, seen);
    const statuses = new Set(setup.load.seen.map(({ status }) => status));
    expect([...statuses].filter((status) => ![200, 402, 422, 429, 502, 503].includes(status))).toEqual([]);
    if (seconds === '30') expect(statuses).not.toContain(502);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a second signal ends the process at once, and the next start ends the holds: no money is lost',
  async () => {
    let left_open = 0;
    // Once the process has ended, holds are open or not by chance.
    for (let round = 0; round < 10 && left_open === 0; round += 1) {
      await using setup = await underLoad();
      setup.server.signal('SIGTERM');
      setup.server.signal('SIGINT');
      expect([129 + 1, 128 + 15]).toContain(await setup.server.ended());
      await setup.load.ended();
      left_open += runAudit(setup.db).open_holds;
      await using next = new ServerProcess(setup.data, setup.model);
      expect(await next.ready()).not.toBeNull();
      expectClean(setup.db);
      for (const seen of setup.load.seen) expectKept(setup.db, seen);
    }
    expect(left_open).toBeGreaterThan(0);
  },
  TEST_TIMEOUT_MS,
);
