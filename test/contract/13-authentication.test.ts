import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, listKeys, revokeKey } from '../../src/accounts/keys.ts';
import { addMember, changeRole } from '../../src/accounts/members.ts';
import { signUp } from '../../src/accounts/users.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let account: TestAccount;
let other: TestAccount;
beforeAll(async () => {
  service = await startTestService();
  account = await addAccount(service);
  other = await addAccount(service);
});
afterAll(() => closeAudited(service));

const UNKNOWN = `sk_svc_${'a'.repeat(32)}`;

/** A request to each of the endpoints, in order but for its headers. */
const ENDPOINTS: readonly (readonly [path: string, init: RequestInit])[] = [
  ['/v1/decisions', { method: 'POST', body: JSON.stringify(SMALL_REQUEST) }],
  ['/v1/systemone', { method: 'POST', body: JSON.stringify(SMALL_REQUEST) }],
  ['/v1/models', {}],
];

async function statuses(headers: Record<string, string>): Promise<number[]> {
  const found: number[] = [];
  for (const [path, init] of ENDPOINTS) {
    const response = await service.fetch(path, { ...init, headers });
    await response.text();
    found.push(response.status);
  }
  return found;
}

async function expectRefused(headers: Record<string, string>, code: 'missing_api_key' | 'invalid_api_key') {
  for (const [path, init] of ENDPOINTS) {
    await expectError(await service.fetch(path, { ...init, headers }), code);
  }
}

describe('Headers', () => {
  test('Authorization: Bearer works on every endpoint', async () => {
    expect(await statuses({ authorization: `Bearer ${account.key}` })).toEqual([200, 200, 200]);
  });

  test('X-API-Key works on every endpoint', async () => {
    expect(await statuses({ 'x-api-key': account.key })).toEqual([200, 200, 200]);
  });

  test('the scheme is not case-sensitive', async () => {
    expect(await statuses({ authorization: `bearer ${account.key}` })).toEqual([200, 200, 200]);
  });

  test('another scheme is no key, and X-API-Key is looked at', async () => {
    expect(await statuses({ authorization: 'Basic dXNlcjpwYXNz', 'x-api-key': account.key })).toEqual([
      200, 200, 200,
    ]);
    await expectRefused({ authorization: 'Basic dXNlcjpwYXNz' }, 'missing_api_key');
  });
});

describe('Precedence', () => {
  test('if both are sent the Bearer key wins: it is the one that pays', async () => {
    const before = await booksOf(service, other);
    expect(await statuses({ authorization: `Bearer ${account.key}`, 'x-api-key': other.key })).toEqual([
      200, 200, 200,
    ]);
    expect(await booksOf(service, other)).toEqual(before);
  });

  test('a Bearer key that is unknown is not saved by X-API-Key', async () => {
    await expectRefused({ authorization: `Bearer ${UNKNOWN}`, 'x-api-key': account.key }, 'invalid_api_key');
  });

  test('a Bearer value that is no key is not saved by X-API-Key', async () => {
    await expectRefused({ authorization: 'Bearer nonsense', 'x-api-key': account.key }, 'missing_api_key');
  });
});

describe('Format', () => {
  test('sk_svc_ and 32 characters of A-Z, a-z, 0-9, - and _', () => {
    expect(account.key).toMatch(/^sk_svc_[A-Za-z0-9_-]{32}$/);
  });
});

describe('Scope', () => {
  test('a key spends the credit and the limits of its own organization', async () => {
    const before = { own: await booksOf(service, account), other: await booksOf(service, other) };
    await statuses({ 'x-api-key': account.key });
    expect((await booksOf(service, account)).credit_micros).toBeLessThan(before.own.credit_micros);
    expect(await booksOf(service, other)).toEqual(before.other);
  });
});

describe('Storage', () => {
  test('stored only as a SHA-256 hash and the first 12 characters', async () => {
    const [row] = await service.execute(`SELECT * FROM api_keys WHERE id = '${account.key_id}'`);
    expect(row?.secret_sha256).toBe(createHash('sha256').update(account.key).digest('hex'));
    expect(row?.display_prefix).toBe(account.key.slice(0, 12));
    expect(JSON.stringify(row)).not.toContain(account.key.slice(12));
  });
});

describe('Active keys', () => {
  test('up to 100 per organization, and they all work', async () => {
    const owner = await addAccount(service);
    const create = async () =>
      (await createKey(service.accounts, OPERATOR, { project_id: owner.project_id, name: 'More' })).key;
    const keys = await Promise.all(Array.from({ length: 99 }, create));
    await expect(create()).rejects.toThrow();
    const responses = await Promise.all(
      keys.map((key) => service.fetch('/v1/models', { headers: { 'x-api-key': key } })),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(99);
  });
});

describe('Role and key permissions', () => {
  const ROLES = [
    ['owner', true, true],
    ['admin', true, true],
    ['developer', true, false],
    ['billing', false, false],
    ['reader', false, false],
  ] as const;
  let people = 0;

  test.each(ROLES)(
    '%s: creates keys %p, revokes any key %p, sees them',
    async (role, may_create, may_revoke_any) => {
      const { accounts } = service;
      const sign = async () => {
        people += 1;
        return (await signUp(accounts, { email: `${role}${people}@example.com`, name: role })).user.id;
      };
      const { organization_id, project_id, key_id } = await addAccount(service);
      await addMember(accounts, OPERATOR, { organization_id, user_id: await sign(), role: 'owner' });
      const user_id = await sign();
      await addMember(accounts, OPERATOR, { organization_id, user_id, role: 'developer' });
      const person = { kind: 'user', user_id } as const;
      const earlier = await createKey(accounts, person, { project_id, name: 'Earlier' });
      await changeRole(accounts, OPERATOR, { organization_id, user_id, role });
      expect(await listKeys(accounts, person, { organization_id })).toHaveLength(2);
      const allowed = async (work: () => Promise<unknown>) => {
        try {
          await work();
          return true;
        } catch (error) {
          expect(error).toMatchObject({ code: 'permission_denied' });
          return false;
        }
      };
      expect(await allowed(() => createKey(accounts, person, { project_id, name: 'New' }))).toBe(may_create);
      expect(await allowed(() => revokeKey(accounts, person, key_id))).toBe(may_revoke_any);
      expect(await allowed(() => revokeKey(accounts, person, earlier.id))).toBe(true);
    },
  );
});

describe('missing_api_key', () => {
  for (const [name, headers] of Object.entries({
    'no header': {},
    'an empty Bearer': { authorization: 'Bearer' },
    'an empty X-API-Key': { 'x-api-key': '' },
    'a value that does not start with sk_svc_': { 'x-api-key': `sk_${'a'.repeat(40)}` },
    'the prefix in capitals': { 'x-api-key': `SK_SVC_${'a'.repeat(32)}` },
    'the key of another service': { authorization: `Bearer sk-proj-${'a'.repeat(100)}` },
    'only the prefix': { authorization: 'Bearer sk_svc_' },
    'a character too short': { 'x-api-key': UNKNOWN.slice(0, -1) },
  })) {
    test(name, async () => {
      await expectRefused(headers, 'missing_api_key');
    });
  }
});

describe('invalid_api_key', () => {
  test('well-formed but unknown', async () => {
    await expectRefused({ 'x-api-key': UNKNOWN }, 'invalid_api_key');
  });

  test('a known key with more behind it, or with another case', async () => {
    await expectRefused({ 'x-api-key': `${account.key}a` }, 'invalid_api_key');
    const flipped = [...account.key.slice(7)].map((c) =>
      c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase(),
    );
    await expectRefused({ 'x-api-key': `sk_svc_${flipped.join('')}` }, 'invalid_api_key');
  });

  test('an unknown key is not remembered: the same value works once it exists', async () => {
    const secret = `sk_svc_${'b'.repeat(32)}`;
    await expectRefused({ 'x-api-key': secret }, 'invalid_api_key');
    const hash = createHash('sha256').update(secret).digest('hex');
    await service.execute(`UPDATE api_keys SET secret_sha256 = '${hash}' WHERE id = '${other.key_id}'`);
    expect(await statuses({ 'x-api-key': secret })).toEqual([200, 200, 200]);
  });
});

describe('never charged', () => {
  test('no 401 touches credit or usage', async () => {
    const before = await booksOf(service, account);
    await expectRefused({ 'x-api-key': `${account.key}x` }, 'invalid_api_key');
    await expectRefused({ 'x-api-key': account.key.slice(0, -1) }, 'missing_api_key');
    expect(await booksOf(service, account)).toEqual(before);
  });
});
