import { expect, test } from 'bun:test';
import { InvalidArgumentError } from 'commander';
import { time } from '../../src/cli/values.ts';

test.each([
  ['2028-02-29', Date.UTC(2028, 1, 29)],
  ['2026-03-31T12:00Z', Date.UTC(2026, 2, 31, 12)],
  ['2026-03-01T00:30:00.5+01:00', Date.UTC(2026, 1, 28, 23, 30, 0, 500)],
])('%s is that time', (text, time_ms) => {
  expect(time(text)).toBe(time_ms);
});

test.each([
  '2026-02-31',
  '2027-02-29T10:00:00Z',
  '2026-04-31T00:00+02:00',
  '2026-13-01',
  '2026-1-1',
  '31.1.2026',
])('%s is no time, and is taken for no other', (text) => {
  expect(() => time(text)).toThrow(InvalidArgumentError);
});
