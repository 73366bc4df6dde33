import { writeSync } from 'node:fs';
import { usageOf } from '../ledger/support.ts';
import { accountNumber, COST_MICROS, HELD_MICROS, LedgerNode, SHORT_LEASE } from './ledger-load.ts';

/**
 * A node in its own process, to kill or pause: `url id accounts holds`. It places holds that it keeps, prints `ready`,
 * and sends requests until its standard input ends. Then it charges the kept holds. It prints each client's answer at
 * once.
 */

const [url, id, accounts_text, holds_text] = process.argv.slice(2);
if (url === undefined || id === undefined) throw new Error('url id accounts holds');
const accounts = Array.from({ length: Number(accounts_text) }, (_, number) => accountNumber(number));
const node = await LedgerNode.start(url, id, SHORT_LEASE);
node.told.onTold = (request_id, is_charged) =>
  void writeSync(1, `${is_charged ? 'charged' : 'failed'} ${request_id}\n`);

const kept = [];
for (let number = 0; number < Number(holds_text); number += 1) {
  const account = accounts[number % accounts.length];
  if (account === undefined) throw new Error('no account');
  const { organization_id, project_id } = account;
  const request_id = `req_${id}_kept_${number}`;
  const asked = { organization_id, project_id, request_id, amount_micros: HELD_MICROS, at_ms: Date.now() };
  const answer = await node.books.hold(asked);
  if (answer.held) kept.push({ hold: answer.hold, account, request_id });
}
let is_over = false;
const load = node.load(accounts, 8, () => is_over);
writeSync(1, 'ready\n');
for await (const _ of process.stdin);
is_over = true;
await load;
for (const { hold, account, request_id } of kept) {
  const rows = [200, 503].map((status) =>
    usageOf(account, request_id, Date.now(), status, status === 200 ? COST_MICROS : 0),
  );
  const [answered, failed] = rows;
  if (answered === undefined || failed === undefined) throw new Error('no usage rows');
  await node.books.charge(hold, COST_MICROS, answered, failed).then(
    () => node.told.charge(request_id),
    (error: unknown) => node.told.fail(request_id, error),
  );
}
await node[Symbol.asyncDispose]();
