import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { inputCost_micros } from '../../src/contract/money.ts';

const HALF_DOLLAR = { input_price_micros_per_million_tokens: 500_000 };

const rows: readonly (readonly [tokens: number, micros: number])[] = [
  [0, 0],
  [1, 1],
  [2, 1],
  [3, 2],
  [999, 500],
  [1_000_000, 500_000],
  [16_384 * 64, 524_288],
];
test.each(rows)('%p tokens at $0.50 per million cost %p micro-dollars', (tokens, micros) => {
  expect(inputCost_micros(HALF_DOLLAR, tokens)).toBe(micros);
});

test('the cost is the exact one, rounded up to the next micro-dollar', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2_000_000 }),
      fc.integer({ min: 0, max: 1_000_000_000 }),
      (tokens, price) => {
        const exact = BigInt(tokens) * BigInt(price);
        const ceiling = (exact + 999_999n) / 1_000_000n;
        expect(BigInt(inputCost_micros({ input_price_micros_per_million_tokens: price }, tokens))).toBe(
          ceiling,
        );
      },
    ),
    { verbose: 1 },
  );
});
