import { expect, test } from 'bun:test';
import { canGoOn } from '../../src/decisions/batch/ending.ts';
import { ERROR_CODES } from '../../src/errors/errors.ts';

test('a batch goes on after every end that passes, and after a body that broke off', () => {
  expect(ERROR_CODES.filter(canGoOn).toSorted()).toEqual([
    'auth_unavailable',
    'billing_unavailable',
    'catalog_unavailable',
    'idempotency_key_in_use',
    'internal_error',
    'invalid_json',
    'model_unavailable',
    'model_warming_up',
    'overloaded',
    'rate_limit_exceeded',
    'request_timeout',
    'unresolved_payment',
  ]);
  expect(canGoOn('not_signed_in')).toBe(false);
});
