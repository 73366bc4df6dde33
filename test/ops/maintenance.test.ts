import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../db/connection.ts';
import { organizations } from '../../db/schema.ts';
import { auditApart } from '../../src/ops/maintenance.ts';

const directory = mkdtempSync(join(tmpdir(), 'tds-test-'));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('the audit in its own thread sees what is in the file', async () => {
  const path = join(directory, 'tds.sqlite');
  const db = openDatabase(path);
  expect((await auditApart(path)).ok).toBe(true);
  db.insert(organizations).values({ id: 'org_x', name: 'X', credit_micros: 5, created_at_ms: 0 }).run();
  const report = await auditApart(path);
  expect(report.ok).toBe(false);
  expect(report.checks.filter((check) => check.violations.length > 0).map((check) => check.name)).toContain(
    'balance_equals_ledger',
  );
  db.$client.close();
});
