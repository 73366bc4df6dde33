import { writeSync } from 'node:fs';
import { accountNumber, LedgerNode, SHORT_LEASE } from './ledger-load.ts';

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
  kept.push({ hold: await node.place(account, `req_${id}_kept_${number}`), account });
}
let is_over = false;
const load = node.load(accounts, 8, () => is_over);
writeSync(1, 'ready\n');
for await (const _ of process.stdin);
is_over = true;
await load;
for (const { hold, account } of kept)
  await node.charge(account, hold).catch((error: unknown) => node.told.fail(hold.request_id, error));
await node[Symbol.asyncDispose]();
