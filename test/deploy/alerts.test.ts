import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allMetrics, metricsReference, REFERENCE_FILE } from '../support/metrics-reference.ts';

const RULES = join(import.meta.dir, '../../src/deploy/prometheus-alerts.yml');
/** The cases of alerts that fire or not, for promtool. */
const CASES = join(import.meta.dir, 'alert-cases.yml');
const PROMTOOL = Bun.which('promtool');

function promtool(...args: readonly string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([PROMTOOL ?? '', ...args]);
  return { exitCode, said: `${stdout}${stderr}` };
}

test('METRICS.md is what the program exports: "bun test/support/metrics-reference.ts" writes it', () => {
  expect(readFileSync(REFERENCE_FILE, 'utf8')).toBe(metricsReference());
});

test('the alerts ask for metrics that the service exports', () => {
  const known = new Set(allMetrics().map(({ name }) => name));
  const expressions = readFileSync(RULES, 'utf8').replaceAll(/^ *(- alert|summary|description): .*$/gm, '');
  const asked = expressions.match(/\b(?:tds|process)_[a-z_]+/g) ?? [];
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.map((name) => name.replace(/_bucket$/, '')).filter((name) => !known.has(name))).toEqual([]);
});

test.skipIf(PROMTOOL === null)(
  "promtool takes the alerts as they are (skipped without it: it is in Debian's package prometheus)",
  () => {
    expect(promtool('check', 'rules', RULES)).toMatchObject({ exitCode: 0 });
    expect(promtool('test', 'rules', CASES)).toEqual({
      exitCode: 0,
      said: expect.stringContaining('SUCCESS'),
    });
  },
);
