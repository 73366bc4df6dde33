import { expect, test } from 'bun:test';
import { matchPath, safeReturnPath } from '../../src/console/pages/paths.ts';

const ORIGIN = 'https://tds.example.com';

test.each([
  ['/console/o/org_1/usage?key=a', '/console/o/org_1/usage?key=a'],
  ['/console', '/console'],
  [null, '/console'],
  ['', '/console'],
  ['/v1/models', '/console'],
  ['/consoles', '/console'],
  ['//evil.example/console', '/console'],
  ['/\\\\evil.example/console', '/console'],
  ['https://evil.example/console', '/console'],
  ['javascript:alert(1)', '/console'],
  ['/console/../v1/models', '/console'],
])('after sign-in, %p leads to %s: never to another site or out of the console', (wanted, shown) => {
  expect(safeReturnPath(wanted, ORIGIN)).toBe(shown);
});

test('a path is one page, and its parts have names', () => {
  const pattern = '/console/o/:organization_id/usage';
  expect(matchPath(pattern, '/console/o/org_1/usage')).toEqual({ organization_id: 'org_1' });
  expect(matchPath(pattern, '/console/o/org_1/keys')).toBeNull();
  expect(matchPath(pattern, '/console/o/org_1')).toBeNull();
  expect(matchPath(pattern, '/console/o/org_1/usage/more')).toBeNull();
  expect(matchPath('/console', '/console')).toEqual({});
});
