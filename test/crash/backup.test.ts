import { expect, test } from 'bun:test';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import type { Db } from '../../db/sqlite/connection.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { tds } from '../cli/support.ts';
import { ChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { expectClean, written } from './kept.ts';
import { type UnderLoad, underLoad } from './under-load.ts';

const TEST_TIMEOUT_MS = 120_000;
/** Requests that are still answered once a backup is there. */
const REQUESTS_AFTERWARDS = 50;

interface Charge {
  readonly id: number;
  readonly request_id: string;
  readonly cost_micros: number;
}

function chargesOf(db: Db): readonly Charge[] {
  return db.$client
    .query<Charge, []>(
      `SELECT ended.id, hold.request_id, -ended.credit_delta_micros AS cost_micros
      FROM ledger_entries AS ended JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.kind = 'charge' ORDER BY ended.id`,
    )
    .all();
}

async function answered(setup: UnderLoad, more: number): Promise<void> {
  const enough = setup.load.seen.length + more;
  await eventually(() => setup.load.seen.length >= enough);
}

/** Restores the backup into a new directory, and holds it against what clients saw before it began, and ever. */
async function drill(setup: UnderLoad, file: string, seen_before: UnderLoad['load']['seen']): Promise<void> {
  const directory = join(setup.root, `restored-${Bun.hash(file)}`);
  const restored = await tds(['restore', file, '--data', directory]);
  expect(restored).toMatchObject({ code: 0, stderr: '' });
  expect(statSync(join(directory, 'tds.sqlite')).mode & 0o777).toBe(0o600);
  const db = openDataDirectory(directory, { create: false });
  expect(runAudit(db).ok).toBe(true);
  for (const { request_id, status, cost_micros } of seen_before) {
    if (status !== 200) continue;
    const found = written(db, request_id);
    expect({ request_id, found }).toMatchObject({ found: { status: 200, charges: 1, open_holds: 0 } });
    expect(found?.charged_micros).toBe(cost_micros ?? Number.NaN);
  }

  // Other charges were acknowledged later or in flight. The backup is one state of the database.
  const charges = chargesOf(db);
  const last_id = charges.at(-1)?.id ?? 0;
  expect(charges).toEqual(chargesOf(setup.db).filter(({ id }) => id <= last_id));
  const seen = new Map(setup.load.seen.map((one) => [one.request_id, one]));
  for (const { request_id, cost_micros } of charges) {
    const told = seen.get(request_id);
    if (told !== undefined)
      expect({ ...told, cost_micros: told.cost_micros ?? cost_micros }).toEqual({
        request_id,
        status: 200,
        cost_micros,
      });
  }
  await using server = await new ChildServer(directory).ready();
  expectClean(db);
  const fetchOf = { fetch: (path: string, init?: RequestInit) => fetch(server.address + path, init) };
  expect((await post(fetchOf, setup.keys.rich, SMALL_REQUEST)).status).toBe(200);
  db.$client.close();
}

test(
  'the drill: a backup under load, restored elsewhere, has every charge that was acknowledged before it began',
  async () => {
    await using setup = await underLoad();
    const file = join(setup.root, 'drill.sqlite.zst');
    const seen_before = [...setup.load.seen];
    const backup = await tds(['backup', file, '--data', setup.data]);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(setup.root).filter((name) => name.includes('partial'))).toEqual([]);
    await answered(setup, REQUESTS_AFTERWARDS);
    await setup.server.kill();
    await setup.load.ended();
    expect(seen_before.some(({ status }) => status === 200)).toBe(true);
    await drill(setup, file, seen_before);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a server backs up on its schedule under load, keeps the newest, and goes on with it after a restart',
  async () => {
    await using setup = await underLoad('--backup-every', '1s', '--backup-keep', '2');
    const backups = join(setup.data, 'backups');
    const names = () =>
      readdirSync(backups)
        .filter((name) => name.endsWith('.zst'))
        .sort();
    const names_before = names();
    const seen_before = [...setup.load.seen];
    // The first new one may have begun before that, the second one has not. Nothing else is kept any more then.
    await eventually(() => names().length === 2 && !names().some((name) => names_before.includes(name)));
    // May leave a third one, which is written before the oldest is removed.
    await setup.server.kill();
    await setup.load.ended();
    await drill(setup, join(backups, names().at(-1) ?? ''), seen_before);
    const before = names();
    await using next = await new ChildServer(setup.data, ['--backup-every', '1d']).ready();
    next.signal('SIGTERM');
    expect(await next.ended()).toBe(0);
    expect(names()).toEqual(before);
  },
  TEST_TIMEOUT_MS,
);
