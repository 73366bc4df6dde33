import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { optionText, recordText, render, text } from '../../../native/plan/render.ts';
import { jsonValueOf } from '../../../src/json/json-value.ts';

/** The results for values and options of the reference that made the training data. */
const ROWS = readFileSync(fileURLToPath(new URL('render.jsonl', import.meta.url)), 'utf8')
  .trim()
  .split('\n')
  .map((line) => [line, JSON.parse(line)] as const);

describe('as the reference renders', () => {
  test.each(ROWS.filter(([, row]) => 'rendered' in row))('%s', (_, row) => {
    expect(render(jsonValueOf(row.value))).toBe(row.rendered);
    expect(text(jsonValueOf(row.value))).toBe(row.text);
  });

  test.each(ROWS.filter(([, row]) => 'option' in row))('%s', (_, row) => {
    expect(optionText(row.id, jsonValueOf(row.description))).toBe(row.option);
  });
});

test('a string is read as it is, and only instructions and descriptions are trimmed', () => {
  expect(recordText('  as it is\n')).toBe('  as it is\n');
  expect(text('  as it is\n')).toBe('as it is');
  expect(text(undefined)).toBe('');
});

test('numbers too large for JSON are still text', () => {
  expect(render([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])).toBe('- inf\n- -inf');
});

test('rendering is deterministic, and keeps every key and string', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const parsed = JSON.parse(JSON.stringify(value));
      const rendered = render(jsonValueOf(parsed));
      expect(rendered).toBe(render(jsonValueOf(JSON.parse(JSON.stringify(value)))));
      const visit = (part: unknown): void => {
        if (typeof part === 'string') expect(rendered).toContain(part.trim());
        else if (part !== null && typeof part === 'object') {
          for (const [key, item] of Object.entries(part)) {
            if (!Array.isArray(part)) expect(rendered).toContain(key.trim());
            visit(item);
          }
        }
      };
      visit(parsed);
    }),
    { numRuns: 200 },
  );
});
