import { Refusal } from '../../src/errors/errors.ts';

/** The code of a refusal; null for whatever else was given. */
export function refusalCode(value: unknown): string | null {
  return value instanceof Refusal ? value.code : null;
}
