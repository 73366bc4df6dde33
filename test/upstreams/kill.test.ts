import { expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { connectDatabase } from '../../db/sqlite/connection.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { addOpenModel } from '../../src/catalog/changes.ts';
import { startChildServer } from '../support/child-server.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(3 * MODEL_TEST_TIMEOUT_MS);

const REQUESTS = 60;
const CREDIT_DOLLARS = 25;

test('a server that is killed under load takes no answer with it that was not begun, and nobody pays for one', async () => {
  const root = temporaryDirectory();
  const [first, second] = [join(root.path, 'first'), join(root.path, 'second')];
  // One key for both, as servers behind one pool have.
  const made = await startChildServer(first, root.path);
  await made.stop();
  cpSync(first, second, { recursive: true });
  const token_file = join(root.path, 'token');
  writeFileSync(token_file, made.key ?? '');
  const [one, two] = await Promise.all([
    startChildServer(first, root.path),
    startChildServer(second, root.path),
  ]);
  const front = await startTestService();
  try {
    const upstreams = {
      protocol: 'systemone',
      addresses: [one.address, two.address],
      draining: [],
      model: null,
      token_file,
      ca_file: null,
    } as const;
    const price = { context_tokens: 16_384, input_price_micros_per_million_tokens: 1_000_000 };
    const model = { id: 'kev-4b', kind: 'decision', description: 'Answers elsewhere.', ...price } as const;
    await addOpenModel(front.accounts, OPERATOR, model, { upstreams });
    const account = await addAccount(front, { credit_dollars: CREDIT_DOLLARS });
    const own = JSON.parse(await (await ask(front, account.key)).text());

    let asked = 0;
    const costs_micros: number[] = [];
    const statuses = new Set<number>();
    const client = async () => {
      while (asked < REQUESTS) {
        asked += 1;
        if (asked === REQUESTS / 3) process.kill(two.pid, 'SIGKILL');
        const response = await ask(front, account.key, { model: model.id });
        statuses.add(response.status);
        const text = await response.text();
        if (response.status !== 200) continue;
        const { answers, usage } = JSON.parse(text);
        expect(Object.keys(answers)).toEqual(Object.keys(SMALL_REQUEST.questions));
        costs_micros.push(Math.round(usage.cost_usd * 1_000_000));
      }
    };
    await Promise.all(Array.from({ length: 6 }, client));

    expect([...statuses].filter((status) => status !== 200 && status !== 502)).toEqual([]);
    // Six can have been under way at the killed one, and only those whose answers had begun are lost.
    expect(costs_micros.length).toBeGreaterThanOrEqual(REQUESTS - 6);
    const charged_micros = costs_micros.reduce((sum, cost) => sum + cost, 0);
    const own_micros = Math.round(own.usage.cost_usd * 1_000_000);
    expect(await booksOf(front, account)).toMatchObject({
      credit_micros: CREDIT_DOLLARS * 1_000_000 - own_micros - charged_micros,
      held_micros: 0,
    });
  } finally {
    await closeAudited(front);
    await Promise.all([one.stop(), two.stop()]);
  }
  // The upstream that lived is right in its own books, too.
  const db = connectDatabase(join(first, 'tds.sqlite'));
  expect(runAudit(db)).toMatchObject({ ok: true, open_holds: 0 });
  db.$client.close();
  root.remove();
});
