import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { COST_MICROS } from './support.ts';

test('a disk that refuses the n-th write fails the requests, charges none of them, and all is well when it recovers', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'disk-failure-child.ts')], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const report = JSON.parse(await new Response(child.stdout).text());
  expect(await child.exited).toBe(0);
  const { charged, released, codes } = report;
  expect(report).toMatchObject({
    rounds_not_clean: [],
    spent_micros: charged * COST_MICROS,
    left_open: 0,
    after_crash: true,
    spent_after_crash_micros: charged * COST_MICROS,
  });
  expect(Object.keys(codes).sort()).toEqual(['SQLITE_IOERR_WRITE']);
  expect(Math.min(charged, released, codes.SQLITE_IOERR_WRITE)).toBeGreaterThan(20);
}, 120_000);
