import { expect } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import { transact } from '../../db/sqlite/connection.ts';
import { usageRecords } from '../../db/sqlite/schema.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { TestClock, temporaryDatabase } from '../accounts/support.ts';
import { contextOn } from '../support/context.ts';

/** A database with one organization, and what the credit services need. */
export async function openBooks() {
  const store = temporaryDatabase();
  const clock = new TestClock();
  const context = contextOn(store.db, clock);
  const organization = await createOrganization(context, OPERATOR, { name: 'Acme' });
  return {
    ...store,
    clock,
    context,
    organization_id: organization.id,
    project_id: organization.default_project_id,
  };
}

export type Books = Awaited<ReturnType<typeof openBooks>>;

/** Fails with the broken rows unless the books are in order. */
export function expectCleanAudit(books: Pick<Books, 'db'>): void {
  expect(runAudit(books.db).checks.filter((check) => check.violations.length > 0)).toEqual([]);
}

/** A request of the organization that was answered and cost this much: hold, charge and usage row. */
export async function spend(
  books: Pick<Books, 'db' | 'organization_id' | 'project_id'> & { readonly context: AccountContext },
  cost_micros: number,
): Promise<void> {
  const { context, db, organization_id, project_id } = books;
  const request_id = randomIdentifiers.id('request');
  const at_ms = context.clock.now_ms();
  const ledger = new SqliteLedger(db);
  const { id: api_key_id } = await createKey(context, OPERATOR, { project_id, name: request_id });
  transact(db, () => {
    const amount_micros = cost_micros + 9;
    const asked = { organization_id, project_id, request_id, amount_micros, at_ms };
    const result = ledger.hold(asked, 'proc_test');
    if (!result.held) throw new Error(result.refusal);
    ledger.charge(result.hold, cost_micros, at_ms);
    db.insert(usageRecords)
      .values({
        request_id,
        time_ms: at_ms,
        organization_id,
        project_id,
        api_key_id,
        model: 'decision-1',
        mode: 'fast',
        endpoint: '/v1/decisions',
        status: 200,
        questions: 1,
        input_tokens: cost_micros * 2,
        cost_micros,
        latency_ms: 1,
      })
      .run();
  });
}
