import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  addressOf,
  isPartOf,
  MEASURES,
  queryOf,
  rangeOf,
  type UsageView,
  viewOf,
  zoomTo,
} from '../../src/console/pages/usage/view.ts';
import { GROUPINGS } from '../../src/store/groupings.ts';
import { requireSpan } from '../../src/usage/buckets.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);

const text = fc.option(fc.string({ minLength: 1 }));
const time_ms = fc.integer({ min: 0, max: 2 * NOW_MS });
const view: fc.Arbitrary<UsageView> = fc.record({
  span: fc.constantFrom('day', 'week', 'month', 'quarter', 'all', '2026-01-01..2026-01-31'),
  zoom: fc.option(
    fc
      .tuple(time_ms, fc.integer({ min: 1, max: 1e9 }))
      .map(([from_ms, length_ms]) => ({ from_ms, to_ms: from_ms + length_ms })),
  ),
  project_id: text,
  api_key_id: text,
  model: text,
  mode: fc.constantFrom('fast', 'consistent', null),
  status: fc.option(fc.integer({ min: 100, max: 599 })),
  request_id: text,
  group_by: fc.constantFrom(...GROUPINGS),
  measure: fc.constantFrom(...MEASURES),
  is_whole: fc.boolean(),
});

/** The address as the browser has it. */
function search(fields: Readonly<Record<string, string | null>>): URLSearchParams {
  const given = Object.entries(fields).flatMap(([name, value]): [string, string][] =>
    value === null ? [] : [[name, value]],
  );
  return new URLSearchParams(new URLSearchParams(given).toString());
}

describe('the view of the usage page', () => {
  test('is in its address whole', () => {
    fc.assert(
      fc.property(view, (one) => {
        expect(viewOf(search(addressOf(one)))).toEqual(one);
      }),
    );
  });

  test('of an address without fields is the last 7 days, and the other way round', () => {
    const week = viewOf(new URLSearchParams());
    expect(search(addressOf(week)).toString()).toBe('');
    expect(queryOf(week, NOW_MS)).toEqual({ from_ms: NOW_MS - 7 * 86_400_000, to_ms: NOW_MS });
  });

  test('of any address asks for a time that there is', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom('day', 'all', 'constructor', '2026-02-31..2026-03-01', '+012000-01-01..+012000-01-02'),
      fc.constantFrom('1969-12-31..1970-01-02', '2026-01-02..2026-01-01', '9999-12-31..9999-12-31'),
      fc.constantFrom('1960-01-01', '2026-01-01T00:00:00Z', '+200000-01-01T00:00:00Z', '700', '5e2', '-1'),
    );
    const fields = fc.record({ span: word, from: word, to: word, status: word, mode: word });
    fc.assert(
      fc.property(fields, (given) => {
        const { from_ms = 0, to_ms = 0, status = 200 } = queryOf(viewOf(search(given)), NOW_MS);
        requireSpan({ from_ms, to_ms, offset_minutes: 0 });
        expect(Number.isInteger(status) && status >= 100 && status <= 599).toBe(true);
      }),
    );
  });

  test.each([
    ['of a week that is shown whole', 'week', 0, 0, false],
    ['of a week without its beginning', 'week', 60_000, 0, true],
    ['of a week without its end', 'week', 0, -60_000, true],
    ['of all time, which begins with the usage', 'all', 60_000, 0, false],
    ['of all time without its end', 'all', 0, -60_000, true],
  ])('is part of what was asked for: %s', (_, span, later_ms, earlier_ms, is_part) => {
    const asked = rangeOf({ span }, NOW_MS);
    const shown = { from_ms: asked.from_ms + later_ms, to_ms: asked.to_ms + earlier_ms };
    expect(isPartOf(shown, rangeOf({ span }, NOW_MS, shown))).toBe(is_part);
  });

  test('with a request asks for nothing else', () => {
    const looked_up = viewOf(new URLSearchParams('request=req_1&span=day&mode=fast&status=503'));
    expect(queryOf(looked_up, NOW_MS)).toEqual({ request_id: 'req_1' });
  });

  test('zooms to whole minutes around what was dragged over, at least one', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: NOW_MS, noNaN: true }),
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        (from_ms, length_ms) => {
          const zoom = zoomTo({ from_ms, to_ms: from_ms + length_ms });
          expect([zoom.from_ms % 60_000, zoom.to_ms % 60_000]).toEqual([0, 0]);
          expect(zoom.from_ms).toBeLessThanOrEqual(Math.max(0, from_ms));
          expect(zoom.to_ms).toBeGreaterThanOrEqual(from_ms + length_ms);
          requireSpan({ ...zoom, offset_minutes: 0 });
        },
      ),
    );
  });
});
