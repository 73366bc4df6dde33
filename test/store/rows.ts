import type { Organization, Project, User } from '../../src/store/account-records.ts';
import type { Invitation } from '../../src/store/invitation-records.ts';
import type { NewKey } from '../../src/store/key-records.ts';

/** 64 hexadecimal characters, another text for each id. */
export function hashOf(id: string): string {
  return new Bun.CryptoHasher('sha256').update(id).digest('hex');
}

export const newUser = (id: string, values: Partial<User> = {}): User => ({
  id,
  email: `${id}@example.com`,
  name: `Name of ${id}`,
  created_at_ms: 1_000,
  ...values,
});

type NewOrganization = Pick<Organization, 'id' | 'name' | 'personal_user_id' | 'created_at_ms'>;

export const newOrganization = (id: string, values: Partial<NewOrganization> = {}): NewOrganization => ({
  id,
  name: `Name of ${id}`,
  personal_user_id: null,
  created_at_ms: 1_000,
  ...values,
});

type NewProject = Pick<Project, 'id' | 'organization_id' | 'name' | 'created_at_ms'>;

export const newProject = (
  id: string,
  organization_id: string,
  values: Partial<NewProject> = {},
): NewProject => ({ id, organization_id, name: `Name of ${id}`, created_at_ms: 1_000, ...values });

export const newKey = (id: string, project_id: string, values: Partial<NewKey> = {}): NewKey => ({
  id,
  project_id,
  name: `Name of ${id}`,
  secret_sha256: hashOf(id),
  display_prefix: 'tds_abcdefgh',
  created_by_user_id: null,
  created_at_ms: 1_000,
  expires_at_ms: null,
  first_key_id: null,
  monthly_limit_micros: null,
  ...values,
});

export const newInvitation = (
  id: string,
  organization_id: string,
  values: Partial<Invitation> = {},
): Invitation => ({
  id,
  organization_id,
  email: 'guest@example.com',
  role: 'developer',
  invited_by_user_id: null,
  token_sha256: hashOf(id),
  created_at_ms: 1_000,
  expires_at_ms: 2_000,
  accepted_at_ms: null,
  revoked_at_ms: null,
  ...values,
});

/** Texts in the order of their bytes, which is the order of no language. */
export const BYTEWISE = ['B', 'Z', '_', 'a', 'b', 'z', 'Ä', 'ä', '😀'];

/** Those texts in an order that is neither theirs nor the reverse. */
export const SHUFFLED = ['a', '😀', 'Z', 'ä', '_', 'b', 'B', 'Ä', 'z'];
