import { runAudit } from '../../db/sqlite/audit.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { SqliteBooks } from '../../db/sqlite/sqlite-books.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { limitFileSize } from './file-size-limit.ts';
import { LedgerSetup, NOW_MS } from './support.ts';

/**
 * Serves requests in a process whose writes the operating system refuses at another byte in every round, so that
 * another write of a commit fails. Prints what happened as JSON, for `disk-failure.test.ts`.
 */

const ROUNDS = 60;
const BYTES_A_ROUND = 1_700;
const CALLERS = 8;

const codes = new Map<string, number>();
let charged = 0;
let released = 0;
const rounds_not_clean: number[] = [];

using setup = new LedgerSetup();
for (let round = 0; round < ROUNDS; round += 1) {
  setup.db.$client.run('PRAGMA wal_checkpoint(TRUNCATE)');
  limitFileSize(round * BYTES_A_ROUND);
  for (let wave = 0; wave < 3; wave += 1) {
    await Promise.all(
      Array.from({ length: CALLERS }, async (_, caller) => {
        const request_id = `req_${round}_${wave}_${caller}`;
        try {
          const hold = await setup.hold(request_id);
          if (caller % 4 === 0) {
            await setup.release(hold, request_id);
            released += 1;
            return;
          }
          await setup.charge(hold, request_id);
          charged += 1;
        } catch (error) {
          const code = systemErrorCode(error) ?? String(error);
          codes.set(code, (codes.get(code) ?? 0) + 1);
        }
      }),
    );
  }
  const in_trouble = runAudit(setup.db);
  limitFileSize(null);
  await setup.books.whenSettled();
  const { ok, open_holds } = runAudit(setup.db, { ended_before_ms: NOW_MS + 1 });
  if (!in_trouble.ok || !ok || open_holds > 0) rounds_not_clean.push(round);
}

const spent_micros = setup.spentMicros();
const db = setup.crash();
const left_open = await new SqliteBooks(
  new GroupCommit(db),
  setup.clock,
  'proc_next',
  setup.events,
).recover();
const after_crash = runAudit(db, { ended_before_ms: NOW_MS + 1 });
console.log(
  JSON.stringify({
    codes: Object.fromEntries(codes),
    charged,
    released,
    rounds_not_clean,
    spent_micros,
    left_open,
    after_crash: after_crash.ok,
    spent_after_crash_micros: setup.spentMicros(),
  }),
);
