import { equal } from 'node:assert/strict';

/** How far each number is from the expected one. Throws where there are not as many. */
export function distances(numbers: readonly number[], expected: readonly number[]): readonly number[] {
  equal(numbers.length, expected.length);
  return numbers.map((number, index) => Math.abs(number - (expected[index] ?? Number.NaN)));
}

/** The largest of them. */
export function largestDistance(numbers: readonly number[], expected: readonly number[]): number {
  return Math.max(...distances(numbers, expected));
}
