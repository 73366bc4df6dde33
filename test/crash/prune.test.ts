import { expect, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { runAudit } from '../../db/sqlite/audit.ts';
import { transact } from '../../db/sqlite/connection.ts';
import { organizations, projectMonths, usageDays, usageRecords } from '../../db/sqlite/schema.ts';
import { CREDIT_MICROS, LedgerSetup, NOW_MS, PROCESS_ID, propertySeed, usageOf } from '../ledger/support.ts';

const CHILD = join(import.meta.dir, 'prune-child.ts');
const REQUESTS = 3_000;
const KILLS = 8;
const KILL_AFTER_MS_MAX = 150;
const HELD_MICROS = 20;
const COST_MICROS = 7;
const MINUTE_MS = 60_000;
const LATER_MS = Date.UTC(2026, 6, 10);

/** Requests of two days, every tenth of which failed. */
function fill(setup: LedgerSetup): void {
  const { organization_id, project_id } = setup.account;
  transact(setup.db, () => {
    for (let number = 0; number < REQUESTS; number += 1) {
      const request_id = `req_${number}`;
      const at_ms = NOW_MS + number * MINUTE_MS;
      const asked = { organization_id, project_id, request_id, amount_micros: HELD_MICROS, at_ms };
      const result = setup.ledger.hold(asked, PROCESS_ID);
      if (!result.held) throw new Error(result.refusal);
      if (number % 10 === 0) setup.ledger.release(result.hold);
      else setup.ledger.charge(result.hold, COST_MICROS, at_ms);
      const [status, cost_micros] = number % 10 === 0 ? [502, 0] : [200, COST_MICROS];
      setup.usage.record(usageOf(setup.account, request_id, at_ms, status, cost_micros));
    }
  });
}

/** Returns the totals that a roll-up must not change. */
function totals({ db }: LedgerSetup) {
  const rows = [...db.select().from(usageRecords).all(), ...db.select().from(usageDays).all()];
  return {
    organizations: db.select().from(organizations).all(),
    months: db.select().from(projectMonths).all(),
    requests: rows.reduce((sum, row) => sum + ('requests' in row ? row.requests : 1), 0),
    cost_micros: rows.reduce((sum, row) => sum + row.cost_micros, 0),
  };
}

/** Runs the child; kills it that long after its first batch, or lets it end. Returns whether it ended by itself. */
async function prune(path: string, kill_after_ms: number | null): Promise<boolean> {
  const args = [path, String(LATER_MS - 30 * 86_400_000), String(LATER_MS)];
  const child = Bun.spawn([process.execPath, CHILD, ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const output = child.stdout.getReader();
  await output.read();
  if (kill_after_ms !== null) {
    await Promise.race([child.exited, Bun.sleep(kill_after_ms)]);
    child.kill('SIGKILL');
  } else {
    while (!(await output.read()).done);
  }
  return (await child.exited) === 0;
}

test('however often rolling up is killed, and while requests go on, the books stay exact', async () => {
  using setup = new LedgerSetup();
  fill(setup);
  const before = totals(setup);
  expect(before.cost_micros).toBe(REQUESTS * 0.9 * COST_MICROS);
  const delay = fc.nat({ max: KILL_AFTER_MS_MAX });
  const delays = fc.sample(delay, { seed: propertySeed('kill prune'), numRuns: KILLS });
  let killed = 0;
  for (const kill_after_ms of delays) {
    if (await prune(setup.path, kill_after_ms)) break;
    killed += 1;
    expect(totals(setup)).toEqual(before);
    const { checks } = runAudit(setup.db, { ended_before_ms: LATER_MS });
    expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
  }
  expect(killed).toBeGreaterThan(0);
  const rolled_up = setup.db.select().from(usageDays).all().length;
  expect(rolled_up).toBeGreaterThan(0);

  // Requests of this connection beside the last run of the other.
  const beside = prune(setup.path, null);
  let spent_micros = before.cost_micros;
  for (let number = 0; number < 100; number += 1) {
    const request_id = `req_beside_${number}`;
    await setup.charge(await setup.hold(request_id), request_id);
    spent_micros += 4;
  }
  expect(await beside).toBe(true);
  expect(totals(setup).requests).toBe(REQUESTS + 100);
  expect(setup.db.select().from(organizations).get()?.credit_micros).toBe(CREDIT_MICROS - spent_micros);
  expect(runAudit(setup.db, { ended_before_ms: LATER_MS }).ok).toBe(true);
}, 300_000);
