import { expect, test } from 'bun:test';
import { dictionary } from '@zxcvbn-ts/language-common';
import { COMMON_PASSWORDS } from '../../src/console/people/common-passwords.ts';
import { PASSWORD_LENGTH_MIN } from '../../src/console/people/password-rules.ts';

test('the common passwords are all of the 10,000 most common that are long enough', () => {
  const most_common = dictionary['passwords-common'].slice(0, 10_000);
  expect([...COMMON_PASSWORDS]).toEqual(most_common.filter(({ length }) => length >= PASSWORD_LENGTH_MIN));
  expect(COMMON_PASSWORDS.size).toBeGreaterThan(100);
});
